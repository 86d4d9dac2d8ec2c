"""Per-machine state that persists between commands, in $XDG_STATE_HOME/profkit."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from profkit.core.atomic_file import write_atomic
from profkit.core.errors import BadInput, EnvironmentProblem, refusal
from profkit.core.typed_file import Model, read_file

M = TypeVar("M", bound=Model)


def state_folder(kind: str) -> Path:
    """The folder of a kind of files, which need not be there."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "profkit" / kind


def write_state(path: Path, text: str) -> None:
    """Write a file below such a folder; raises EnvironmentProblem where that can't be."""
    remedy = "set XDG_STATE_HOME to a writable directory"
    with refusal(f"{path}: can't be written", EnvironmentProblem, remedy):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)


def read_state(kind: str, model: type[M]) -> list[M]:
    """The files of a kind, those that can't be read left out."""
    files = []
    for path in sorted(state_folder(kind).glob("*.json")):
        with suppress(BadInput):
            files.append(read_file(path, model))
    return files
