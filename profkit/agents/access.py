"""What an agent may touch: files below given folders, and programs only where that was allowed."""

from pathlib import Path

from msgspec import Struct

from profkit.core.errors import UsageError
from profkit.ui.text import cut

_SHOWN = 200  # characters of a path in an error, chosen


class Access(Struct, frozen=True):
    """`roots` are resolved folders; `run` states that programs may be run."""

    roots: tuple[Path, ...]
    run: bool = False

    def path(self, text: str) -> str:
        """A path below a root, resolved: links out of it don't count. Raises UsageError."""
        if not text or "\0" in text:
            raise UsageError("an empty path, or one with a NUL", "pass the path of a file")
        path = (self.roots[0] / text).resolve()
        if not any(path == root or root in path.parents for root in self.roots):
            raise UsageError(
                f"{cut(text, _SHOWN)}: outside the roots", "start the server with --root DIR"
            )
        return str(path)

    def check_run(self) -> None:
        """Raise UsageError where programs may not be run."""
        if not self.run:
            raise UsageError("programs may not be run", "start the server with --allow-run")


def word(text: str) -> str:
    """A value of an option: never an option itself. Raises UsageError."""
    if text.startswith("-") or "\0" in text:
        raise UsageError(f"{text[:40]!r} is not a value", "pass a word that is no option")
    return text
