"""Whether a trial is of the program or target that was recorded."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, structs

from profkit.core.errors import BadInput, UsageError
from profkit.rules.tried import Tried, tried_table
from profkit.runs.run import RUNS_SCRIPTS, read_manifest
from profkit.ui.document import Block, Note
from profkit.ui.text import literal


class KnownTrial(Struct, frozen=True):
    """What was tried on a program or target, and a remark on whether it is the recorded one."""

    rows: tuple[Tried, ...] = ()
    command: str = ""
    note: str = ""

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (*([Note(self.note)] if self.note else []), *self.table)

    @property
    def table(self) -> tuple[Block, ...]:
        return tried_table(self.rows, self.command)


NO_TRIAL = KnownTrial()


def folder_of(place: Path) -> Path:
    """The folder of a run, or of a recording."""
    return place if place.is_dir() else place.parent


def fitting(
    trial: KnownTrial,
    name: str,
    gpu: str,
    place: Path,
    gpus: Iterable[str],
    *,
    file: Path | None,
    other: str = "",
) -> KnownTrial:
    """The trial of a program or target of a name on a GPU ("": unknown) for a run or recording,
    where no `other` reason speaks against it.

    Raises UsageError where the one in a `file` is of another program or GPU; one that lies beside
    is then left out.
    """
    recorded = ""
    with suppress(BadInput):  # another kind of folder
        recorded = read_manifest(folder_of(place)).target
    known = sorted({each for each in gpus if each})
    if recorded not in {"", name}:
        other = f"a trial of {name}, not of {recorded}"
    elif known and gpu and gpu not in known:
        other = f"a trial on {gpu}, not on {', '.join(known)}"
    if other and file:
        raise UsageError(f"{file}: {literal(other)}", "give one of this program and GPU")
    if other:
        return KnownTrial(note=f"try.json is left out: {literal(other)}")
    if recorded and not RUNS_SCRIPTS.match(recorded):
        return trial
    note = f"Tried on {trial.command}: whether {place.name} is of it is not recorded"
    return structs.replace(trial, note=note)
