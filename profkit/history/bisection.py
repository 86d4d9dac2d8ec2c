"""Which commits to measure next to find the one that a change is due to."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.history.content import DIRTY

_PATIENCE = 20.0  # s, chosen: git lists a million commits in a second
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True)
class Bisection:
    """Commits to measure, the best first, of `count` that may be the first bad one; `reason` says
    why there is none. `again`: they were measured, which did not tell."""

    commits: tuple[str, ...]
    count: int
    reason: str = ""
    again: bool = False


def bisect(good: str, bad: str, measured: Iterable[str], folder: Path) -> Bisection:
    """The commits between a good and a bad one to try next: the middle, then those of both halves.

    The folder's repository has them. Those that were not measured yet come before others.
    """
    ends = [commit.removesuffix(DIRTY) for commit in (good, bad)]
    if not all(ends):
        return Bisection((), 0, "runs without a commit")
    if good != bad and bad.endswith(DIRTY):
        return Bisection((), 0, "the first bad run is of a tree with uncommitted changes")
    if not all(map(_COMMIT.fullmatch, ends)):
        return Bisection((), 0, "no valid commits")
    if ends[0] == ends[1]:
        return Bisection((), 0, "one commit on both sides")
    listed = _between(ends[0], ends[1], folder)
    if listed is None:
        return Bisection((), 0, f"no repository with both commits in {folder}")
    if not listed:
        return Bisection((), 0, "the good commit does not precede the bad one")
    inner = listed[:-1]
    known = {commit.removesuffix(DIRTY) for commit in measured} - {""}
    unknown = [name for name in inner if not any(map(name.startswith, known))]
    return Bisection(
        _halving(unknown or inner),
        len(listed),
        "" if inner else "no commit is between",
        again=not unknown,
    )


def _halving(commits: Sequence[str]) -> tuple[str, ...]:
    """The middle of these, then those of both halves."""
    count = len(commits)
    places = dict.fromkeys((count // 2, count // 4, 3 * count // 4))
    return tuple(commits[place] for place in places if place < count)


def _between(good: str, bad: str, folder: Path) -> list[str] | None:
    """The commits after the good one up to the bad one, oldest first, along first parents; None
    where the repository lacks one of them."""
    command = ["git", "-C", str(folder), "--no-optional-locks", "rev-list", "--reverse"]
    try:
        done = subprocess.run(
            [*command, "--first-parent", f"{good}..{bad}", "--"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.split() if done.returncode == 0 else None
