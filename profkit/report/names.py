"""Names for display: shortened kernel names, paths without the host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.ui.names import told_apart as told_apart
from profkit.ui.text import literal, shorten

if TYPE_CHECKING:
    from profkit.report.summary import Group


def file_name(path: str, *, with_host: bool) -> str:
    """The path, or without the host only the file's name."""
    return path if with_host else Path(path).name


def function_name(group: Group, width: int, beside: Sequence[Group] = ()) -> str:
    """A kernel's function name, extended where other kernels of its report, or those in `beside`,
    have the same: CUTLASS names every kernel `Kernel`."""
    others = [
        name for other in beside if other.function == group.function for name in other.namesakes
    ]
    names = dict.fromkeys([*group.namesakes, *others])
    if len(names) < 2:
        return shorten(literal(group.function), width)
    return told_apart(map(literal, names), width)[literal(group.name)]


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
