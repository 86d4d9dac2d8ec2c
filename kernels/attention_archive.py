"""Keeps recordings of attention in one archive: `python -m kernels.attention_archive DIR FILE...`

Their reports hold the programs of libraries that the report of the run of `sdpa_s512` beside the
archive holds, and are compressed as differences from it: to a quarter of what they take one by one.
The command moves files of DIR, reports/<gpu>, into its archive; it needs zstd's command line.
"""

from __future__ import annotations

import argparse
import io
import lzma
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import zstandard

from kernels.pack import decompress, plain_content

ARCHIVE = "attention.tar.zst"
_REFERENCE = "sdpa_s512/*/sdpa_s512.ncu-repz"
_WINDOW_LOG = 28  # 256 MiB: the 80 MB of the reference and the 120 MB of the archive fit


def complete(folder: Path, out: Path) -> None:
    """Copy the recordings of a GPU to a new folder, with the files of the archive among them."""
    shutil.copytree(folder, out)
    for name, data in _files(folder).items():
        packed = name.endswith(".ncu-repz")
        (out / name).write_bytes(zstandard.ZstdCompressor(1).compress(data) if packed else data)
    (out / ARCHIVE).unlink(missing_ok=True)


def move(folder: Path, paths: Sequence[Path]) -> None:
    """Move files into the archive: reports without their compression, exports too.

    Where a manifest lists a report, it lists the plain one then.
    """
    files = _files(folder)
    for place in {path.parent for path in paths}:
        decompress(place)
    for path in paths:
        plain = path if path.is_file() else path.with_suffix(".ncu-rep")
        name = str(plain.relative_to(folder))
        if plain.suffix == ".xz":
            files[name.removesuffix(".xz")] = lzma.decompress(plain.read_bytes())
        else:
            files[name] = (
                plain_content(plain) if plain.suffix == ".ncu-repz" else plain.read_bytes()
            )
        plain.unlink()
    _write(folder, files)


def _reference(folder: Path) -> bytes:
    (path,) = folder.glob(_REFERENCE)
    return plain_content(path)


def _files(folder: Path) -> dict[str, bytes]:
    """The content of the archive by names; that of reports is plain, whatever their names."""
    if not (folder / ARCHIVE).is_file():
        return {}
    reference = zstandard.ZstdCompressionDict(
        _reference(folder), dict_type=zstandard.DICT_TYPE_RAWCONTENT
    )
    reader = zstandard.ZstdDecompressor(dict_data=reference, max_window_size=1 << _WINDOW_LOG)
    with (
        (folder / ARCHIVE).open("rb") as packed,
        reader.stream_reader(packed) as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        contents = ((member.name, tar.extractfile(member)) for member in tar)
        return {name: file.read() for name, file in contents if file is not None}


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    with tempfile.TemporaryDirectory(prefix="profkit-") as scratch:
        reference, whole = Path(scratch) / "reference", Path(scratch) / "whole"
        reference.write_bytes(_reference(folder))
        with tarfile.open(whole, "w") as tar:
            for name in sorted(files, key=lambda name: -len(files[name])):
                info = tarfile.TarInfo(name)
                info.size = len(files[name])
                tar.addfile(info, io.BytesIO(files[name]))
        options = ["--quiet", "--force", "--ultra", "-22", f"--long={_WINDOW_LOG}"]
        command = ["zstd", *options, f"--patch-from={reference}", str(whole)]
        subprocess.run([*command, "-o", str(folder / ARCHIVE)], check=True)


def main() -> int:
    """Move what the command line names."""
    parser = argparse.ArgumentParser(description="Move recordings of attention into one archive.")
    parser.add_argument("folder", type=Path, help="reports/<gpu>")
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE", help="files in that folder")
    options = parser.parse_args()
    move(options.folder, options.paths)
    return 0


if __name__ == "__main__":
    sys.exit(main())
