"""Recorded pairs in one compressed archive: a `.tar.zst` of pair folders, unpacked to be read.

Reports of one GPU repeat the same names thousands of times: compressed together they take a third
of the space that they take one by one.
"""

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from profkit.core.errors import BadInput
from profkit.core.regular_file import open_regular

ARCHIVE = ".tar.zst"
WINDOW_LOG = 27  # zstd's largest window that its tools unpack without an option: 128 MiB
_LARGEST = 8 << 30  # bytes unpacked, chosen: 40 times a recording of 100 pairs


@contextmanager
def unpacked(folder: Path) -> Iterator[tuple[Path, ...]]:
    """The folder itself and, in a temporary directory, the content of each archive in it.

    `folder` may be an archive. Raises BadInput where it is neither, or damaged.
    """
    is_archive = folder.is_file() and folder.name.endswith(ARCHIVE)
    if not (is_archive or folder.is_dir()):
        reason = "not a directory" if folder.exists() else "no such directory"
        raise BadInput(f"{folder}: {reason}", "pass a directory of recorded pairs")
    archives = [folder] if is_archive else sorted(folder.glob(f"*{ARCHIVE}"))
    with tempfile.TemporaryDirectory(prefix="profkit-") as scratch:
        places = [Path(scratch) / archive.name.removesuffix(ARCHIVE) for archive in archives]
        for archive, place in zip(archives, places, strict=True):
            unpack(archive, place)
        yield tuple(places) if is_archive else (folder, *places)


def unpack(archive: Path, out: Path) -> None:
    """Unpack an archive below `out`; raises BadInput where it is damaged or too large."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG)
    try:
        with (
            open_regular(archive) as file,
            decompressor.stream_reader(file) as stream,
            tarfile.open(fileobj=stream, mode="r|") as tar,
        ):
            total = 0
            for member in tar:
                total += member.size
                if total > _LARGEST:
                    raise BadInput(f"{archive}: more than {_LARGEST >> 30} GiB", "split it")
                tar.extract(member, out, filter="data")
    except (OSError, EOFError, tarfile.TarError, zstandard.ZstdError) as error:
        raise BadInput(f"{archive}: damaged ({error})", "copy or record it again") from None
