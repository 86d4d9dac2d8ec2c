"""How an application is profiled, and the file from which an unfinished run goes on."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from profkit.application.ranking import EXPLAINED
from profkit.core.atomic_file import write_atomic
from profkit.core.errors import BadInput
from profkit.core.text_files import read_text
from profkit.recording.recording import Plan

PLAN = ".plan.json"
"""Its name in a run. Hidden, since it has the whole command line, which a finished run hasn't."""


@dataclass(frozen=True)
class ApplicationPlan(Plan):
    """`step` is the NVTX range of a step, None: steps are found; `budget` the seconds that all may
    take, `explain` the share of the kernels' time that the picked ones are to explain. With
    `collectives` those of NCCL are profiled too, with `modules` those of torch named. `patience` is
    the seconds without output and CPU time after which ncu is ended."""

    step: str | None = None
    budget: float | None = None
    explain: float = EXPLAINED
    patience: float = 60.0
    collectives: bool = False
    modules: bool = True


class _PlanFile(msgspec.Struct, frozen=True):
    """A plan, and the folder from which the program was started."""

    folder: str
    plan: Any


def save_plan(folder: Path, plan: ApplicationPlan) -> None:
    """Write the plan of a run; raises OSError."""
    file = _PlanFile(str(Path.cwd()), replace(plan, max_time=0.0))  # JSON has no infinity
    write_atomic(folder / PLAN, msgspec.json.encode(file, enc_hook=str).decode())


def saved_plan(run: Path) -> tuple[ApplicationPlan, Path]:
    """The plan of an unfinished run, and the folder from which its program was started; raises
    BadInput where the run has none."""
    text = read_text(run / PLAN, "record a new run")
    try:
        file = msgspec.json.decode(text, type=_PlanFile)
        plan = msgspec.convert(file.plan, ApplicationPlan, dec_hook=lambda kind, text: kind(text))
    except msgspec.MsgspecError as error:
        raise BadInput(f"{run / PLAN}: {error}", "record a new run") from None
    return replace(plan, out=run.absolute().parent.parent), Path(file.folder)
