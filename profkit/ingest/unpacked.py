"""A compressed report as a plain file that nothing has to clean up."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO

from profkit.errors import BadInput, EnvironmentProblem


def unpacked(path: Path) -> BinaryIO:
    """The plain bytes of a zstd file, in a file without a name below TMPDIR.

    Having no name it goes with the process that holds it open, whatever signal ends that, and
    nobody else can open it. Raises BadInput for data that is no zstd data, EnvironmentProblem where
    there is no room for it.
    """
    import zstandard

    folder = tempfile.gettempdir()
    try:
        plain: BinaryIO = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        with path.open("rb") as packed:
            frames = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
            shutil.copyfileobj(frames, plain)
        plain.flush()
    except zstandard.ZstdError:
        raise BadInput(f"{path}: the report is damaged, its compressed data is") from None
    except OSError as error:
        raise EnvironmentProblem(
            f"{path}: can't be unpacked into {folder} ({error.strerror})",
            "set TMPDIR to a folder with room",
        ) from None
    return plain


def name_of(file: BinaryIO) -> str:
    """A path by which this process can open a file again that has no name."""
    return f"/proc/self/fd/{file.fileno()}"
