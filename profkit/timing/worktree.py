"""Another commit of a file's repository, checked out temporarily."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from profkit.core.errors import EnvironmentProblem, UsageError, refusal

_PREFIX = "profkit-worktree-"


class Checkout(Struct, frozen=True):
    """A commit of the repository `top` checked out at `root`: the file there, its short hash."""

    top: Path
    root: Path
    file: Path
    commit: str

    def mirrored(self, path: Path) -> Path:
        """Where a path of the working tree is in the checkout; others as they are."""
        path = path.resolve()
        return self.root / path.relative_to(self.top) if path.is_relative_to(self.top) else path


@contextmanager
def checked_out(file: Path, reference: str) -> Iterator[Checkout]:
    """`file` as a commit has it, in a temporary worktree that goes when the block ends.

    Raises UsageError where the file is in no repository, the reference names no commit, or the
    commit lacks the file; EnvironmentProblem where git fails.
    """
    folder = file.resolve().parent
    top = Path(_git(folder, "rev-parse", "--show-toplevel", why=f"{file} is in no git repository"))
    commit = _git(
        top, "rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}",
        why=f"{reference!r} names no commit of {top.name}",
    )  # fmt: skip
    top = top.resolve()
    inside = file.resolve().relative_to(top)
    _git(top, "cat-file", "-e", f"{commit}:{inside.as_posix()}", why=f"{reference} has no {inside}")
    _clear_abandoned(top)
    with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-") as temporary:
        root = Path(temporary) / top.name
        added = _run(top, "worktree", "add", "--detach", "--quiet", str(root), commit)
        if added.returncode:
            raise EnvironmentProblem(f"git can't check out {reference}: {added.stderr.strip()}")
        try:
            yield Checkout(top, root, root / inside, commit[:9])
        finally:
            _run(top, "worktree", "remove", "--force", str(root))


def _clear_abandoned(top: Path) -> None:
    """Remove the checkouts of killed processes, and git's records of them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        process = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if process.isdigit() and not Path(f"/proc/{process}").exists():
            shutil.rmtree(folder, ignore_errors=True)
    _run(top, "worktree", "prune")


def _git(folder: Path, *arguments: str, why: str) -> str:
    done = _run(folder, *arguments)
    if done.returncode:
        raise UsageError(why, "name a file and a commit of one repository")
    return done.stdout.strip()


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    with refusal("git can't be run", EnvironmentProblem, "install git"):
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
