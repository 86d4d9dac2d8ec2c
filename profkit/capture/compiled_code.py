"""Machine code that compilers left on disk: the caches of profkit, Triton and torch.compile, and
programs and torch extensions that nvcc compiled."""

import getpass
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from profkit.capture.cuda_source import kernel_cache
from profkit.capture.tools import installed
from profkit.core.errors import BadInput
from profkit.core.file_name import file_name
from profkit.core.regular_file import open_regular

_CUBIN = ".cubin"
_ELF = b"\x7fELF"
_EXTRACTED = re.compile(r"\.sm_(\d+)(\d)[af]?\.cubin$")
_LONGEST = 60  # seconds in all, chosen: a program of 100 MB takes one
_MOST = 64  # files, chosen: as many kernels as a target has; each is read


def compiled_files(function: str, environment: Mapping[str, str]) -> Iterator[Path]:
    """The cubins that may have a kernel of that name, newest first, of programs that run in an
    environment.

    Triton names files as kernels; profkit's own are named by their inputs, and new when they were
    used last.
    """
    files = [
        file
        for folder in _named(environment)
        for file in folder.glob(f"**/{file_name(function, '_') or '_'}{_CUBIN}")
    ]
    files += kernel_cache(environment).glob(f"*{_CUBIN}")
    times = {file: time for file in files if (time := _changed(file)) is not None}
    yield from sorted(times, key=lambda file: (-times[file], file))[:_MOST]


def extracted_files(
    words: Sequence[str], environment: Mapping[str, str], cc: tuple[int, int], folder: Path
) -> list[Path]:
    """The cubins that a GPU may run of a command's programs and of torch's extensions, extracted
    into a folder by cuobjdump; those of its own compute capability first. Empty without it. What
    can't be extracted in a minute is left out."""
    tool = installed("cuobjdump")
    if tool is None:
        return []
    end = monotonic() + _LONGEST
    for number, file in enumerate(_linked(words, environment)):
        (own := folder / str(number)).mkdir()
        command = [tool, "--extract-elf", "all", str(file.resolve())]
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, cwd=own, capture_output=True, timeout=end - monotonic())
    major, minor = cc
    fitting = []
    for file in sorted(folder.glob(f"*/*{_CUBIN}")):
        match = _EXTRACTED.search(file.name)
        if match and int(match[1]) == major and int(match[2]) <= minor:
            fitting.append((-int(match[2]), file))
    return [file for _, file in sorted(fitting)]


def _linked(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[Path]:
    """The machine's programs and libraries that a command names, and torch's extensions, newest
    first."""
    named = (shutil.which(word) or word for word in words)
    extensions = Path(
        environment.get("TORCH_EXTENSIONS_DIR") or Path.home() / ".cache" / "torch_extensions"
    )
    libraries = {file: time for file in extensions.glob("**/*.so") if (time := _changed(file))}
    newest = sorted(libraries, key=lambda file: (-libraries[file], file))
    for file in (*dict.fromkeys(map(Path, named)), *newest[:_MOST]):
        with suppress(BadInput, OSError, ValueError), open_regular(file) as start:
            if start.read(len(_ELF)) == _ELF:
                yield file


def _named(environment: Mapping[str, str]) -> Iterator[Path]:
    """The folders of compilers that name a file as its kernel, as far as they exist."""
    yield Path(environment.get("TRITON_CACHE_DIR") or Path.home() / ".triton" / "cache")
    with suppress(KeyError, OSError):  # a container's user may have no name
        yield Path(
            environment.get("TORCHINDUCTOR_CACHE_DIR")
            or Path(tempfile.gettempdir()) / f"torchinductor_{getpass.getuser()}"
        )


def _changed(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except OSError:
        return None
