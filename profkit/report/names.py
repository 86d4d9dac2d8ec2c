"""Names as they are shown and asked for: paths without the host and home folders, kernels.

Home folders name people, and Windows has its own separator.
"""

import re
from pathlib import Path

from profkit.core.errors import UsageError

# A home folder by where systems keep them, wherever that is mounted (/export/home, /mnt/c/Users).
# root's is left: it names nobody.
_HOME = re.compile(
    r"""(?<![\w.])(?:
        [A-Za-z]:[\\/]+(?i:Users)[\\/]+(?:[^\\/:*?"<>|\n]+(?=[\\/])|[^\s\\/:*?"<>|]+)
        | (?:/[\w.-]+)*?/(?:home|Users|users)/[^\s/:"']+
    )""",
    re.VERBOSE,
)
_WINDOWS = re.compile(r"[A-Za-z]:\\|\\\\")


def file_name(path: str, *, with_host: bool) -> str:
    """The path, or without the host only the file's name."""
    return path if with_host else Path(path).name


def without_homes(text: str) -> str:
    """A text with `~` for each path of a home folder: /home/ann/x.cu becomes ~/x.cu."""
    return _HOME.sub("~", text)


def posix(path: str) -> str:
    """A path with slashes, whichever system wrote it."""
    return path.replace("\\", "/") if _WINDOWS.match(path) else path


def kernel_pattern(kernel: str) -> re.Pattern[str]:
    """A regular expression to find in names of kernels; raises UsageError."""
    try:
        return re.compile(kernel)
    except re.error as error:
        raise UsageError(
            f"kernel {kernel!r} is not a valid regular expression ({error})",
            "escape special characters with a backslash",
        ) from None
