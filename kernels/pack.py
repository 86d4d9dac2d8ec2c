"""Moves recordings into one archive: `python -m kernels.pack reports/h200/pairs NAME...`

The archive is `pairs.tar.zst` in that folder (`apps.tar.zst` in `apps`, and so on); what is in it
already is replaced. Reports and timelines are stored uncompressed in it, since the whole is
compressed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

import zstandard

from profkit.core.atomic_file import replacement
from profkit.core.integrity import MANIFEST
from profkit.core.regular_file import digest
from profkit.score.pair_archive import ARCHIVE, WINDOW_LOG, unpack

_LEVEL = 22  # zstd's highest: 2% smaller than 19, for twice the time


def move(folder: Path, names: Collection[str]) -> None:
    """Move the recordings of these names from a folder into its archive."""
    archive = folder / f"{folder.name}{ARCHIVE}"
    with tempfile.TemporaryDirectory(prefix="profkit-") as scratch:
        inside = Path(scratch)
        if archive.is_file():
            unpack(archive, inside)
        for name in names:
            shutil.rmtree(inside / name, ignore_errors=True)
            shutil.copytree(folder / name, inside / name)
            decompress(inside / name)
        pack(sorted(inside.iterdir()), archive)
    for name in names:
        shutil.rmtree(folder / name)


def decompress(pair: Path) -> None:
    """Replace compressed timelines by plain ones, and reports, in their manifest too."""
    for packed in pair.glob("*.sqlite.zst"):
        packed.with_suffix("").write_bytes(plain_content(packed))
        packed.unlink()
    if not (pair / MANIFEST).is_file():
        return
    manifest = json.loads((pair / MANIFEST).read_text(encoding="utf-8"))
    for packed in pair.glob("*.ncu-repz"):
        report = packed.with_suffix(".ncu-rep")
        content = plain_content(packed)
        report.write_bytes(content)
        entry = manifest["files"].pop(packed.name)
        manifest["files"][report.name] = entry | {"sha256": digest(report), "bytes": len(content)}
        packed.unlink()
    (pair / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def pack(folders: Iterable[Path], archive: Path) -> None:
    """Write the files of these folders as an archive, each below its folder's name."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL, window_log=WINDOW_LOG, enable_ldm=True
    )
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    with (
        replacement(archive, 0o666) as temporary,
        temporary.open("wb") as file,
        compressor.stream_writer(file, closefd=False) as stream,
        tarfile.open(fileobj=stream, mode="w|") as tar,
    ):
        files = [file for folder in folders for file in folder.iterdir()]
        # Reports of like size are often alike, and then within the window: an eighth is saved.
        for path in sorted(files, key=lambda file: (file.suffix, file.stat().st_size, file)):
            info = tarfile.TarInfo(f"{path.parent.name}/{path.name}")
            info.size = path.stat().st_size
            with path.open("rb") as content:
                tar.addfile(info, content)


def plain_content(packed: Path) -> bytes:
    """What a compressed file holds."""
    return zstandard.ZstdDecompressor().decompressobj().decompress(packed.read_bytes())


def main() -> int:
    """Pack what the command line names."""
    parser = argparse.ArgumentParser(description="Move recordings into one archive.")
    parser.add_argument("folder", type=Path, help="reports/<gpu>/pairs, or apps")
    parser.add_argument("names", nargs="+", metavar="NAME")
    options = parser.parse_args()
    move(options.folder, options.names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
