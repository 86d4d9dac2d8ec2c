"""Names and paths for display: without the host, home folders and what surrounds a kernel's name.

Home folders name people, and Windows has its own separator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

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


def own_names(names: Iterable[str]) -> Mapping[str, str]:
    """Demangled names without return type, namespaces, templates and parameters, where what is left
    is unique: `flash_fwd_kernel`. Others are returned unchanged."""
    own = {name: _own(name) for name in names}
    texts = list(own.values())
    return {name: text if texts.count(text) == 1 else name for name, text in own.items()}


def _own(name: str) -> str:
    """The function's own name: what is left outside brackets, its last word before the last pair of
    round ones."""
    text, depth = "", 0
    for character in name.replace("(anonymous namespace)::", "").replace("->", ""):
        depth -= character in ">)"
        text += character if depth == 0 and character not in "<>)" else ""
        depth += character in "<("
    words = text.partition("(")[0].replace("::", " ").split()
    return words[-1] if words and depth == 0 else name


def without_homes(text: str) -> str:
    """A text with `~` for each path of a home folder: /home/ann/x.cu becomes ~/x.cu."""
    return _HOME.sub("~", text)


def posix(path: str) -> str:
    """A path with slashes, whichever system wrote it."""
    return path.replace("\\", "/") if _WINDOWS.match(path) else path
