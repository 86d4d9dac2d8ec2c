"""A compressed report as a plain file that nothing has to clean up."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path

from profkit.core.errors import BadInput, EnvironmentProblem


class Unpacked:
    """The plain bytes of a zstd file, in a file without a name below TMPDIR.

    Having no name it goes with the process that holds it open, whatever signal ends that, and
    nobody else can open it. It is open as long as this object lives; `path` is for this process.

    Raises BadInput for data that is no zstd data, EnvironmentProblem where there is no room for it.
    """

    def __init__(self, packed: Path) -> None:
        import zstandard

        folder = tempfile.gettempdir()
        try:
            with packed.open("rb") as source, tempfile.TemporaryFile(dir=folder) as plain:
                frames = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)
                shutil.copyfileobj(frames, plain)
                plain.flush()
                self.descriptor = os.dup(plain.fileno())
        except zstandard.ZstdError:
            raise BadInput(f"{packed}: the report is damaged, its compressed data is") from None
        except OSError as error:
            raise EnvironmentProblem(
                f"{packed}: can't be unpacked into {folder} ({error.strerror})",
                "set TMPDIR to a folder with room",
            ) from None
        weakref.finalize(self, os.close, self.descriptor)

    @property
    def path(self) -> str:
        """What to open it by."""
        return f"/proc/self/fd/{self.descriptor}"
