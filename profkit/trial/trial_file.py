"""`profkit.try/1`: what each switch did to a program."""

from __future__ import annotations

from typing import Literal

from profkit.capture.written import Written
from profkit.core.typed_file import File, Model
from profkit.timing.results import Comparison

TRIAL = "try.json"
"""Its name in a run, whose plan it proves."""
Limit = Literal["input", "host", "device", ""]
Changes = Literal["nothing", "rounding", "random", "precision"]
Status = Literal[
    "faster", "unverified", "no difference", "slower", "undecided", "changes results", "failed",
    "not applicable", "not tried",
]  # fmt: skip


class Preparation(Model, frozen=True):
    """What a run takes besides its units' time: `seconds` more than an unchanged one, which a gain
    makes up for in so many `units`, at the ends of its interval."""

    seconds: float
    units: tuple[int, int]


class TrialRow(Model, frozen=True, kw_only=True):
    """One switch, or several together.

    `changes` is what they declare to change. `speedup` is the mean
    over `runs` runs, None without one that counts; `comparison` is the verdict, corrected for all
    rows, None below three pairs. `difference` is the largest relative difference of results from
    the unchanged program's, None where there is nothing to compare, and `allowed` the one that
    counts as the same. `status` is "unverified" of a gain whose whole program was not compared, or
    whose results can't be. `reason` says why there is no verdict. `keep` is what to write in the
    program. `prepares` is what compiling takes of a first run, then of one that finds it compiled;
    empty for what compiles nothing, or gains nothing.
    """

    switches: tuple[str, ...]
    what: str
    changes: Changes
    status: Status
    runs: int = 0
    speedup: float | None = None
    comparison: Comparison | None = None
    difference: float | None = None
    allowed: float | None = None
    reason: str = ""
    keep: tuple[str, ...] = ()
    prepares: tuple[Preparation, ...] = ()


class Unchanged(Model, frozen=True, kw_only=True):
    """The unchanged program: its unit, seconds of it (median over runs), and what limits it.

    `spread` is the relative standard deviation of the unit's time between runs, None for one run;
    `difference` the largest relative difference of its results between runs, None for one run or
    without results. `faulty` says why its results can't be compared: what is NaN or infinite, or
    changes from run to run as a whole.
    `whole` says that each run was the whole program.
    """

    unit: str
    units: int
    seconds: float
    runs: int
    limit: Limit
    spread: float | None
    difference: float | None
    whole: bool
    faulty: str = ""


class Response(Model, frozen=True, kw_only=True):
    """A kernel's time with a perturbation over that without, at 99% between runs.

    The three are None for a `reason`. `taken` is how many times as many SMs, or blocks on an SM,
    there were without it. `evidence` is what it says for or against a cause.
    """

    perturbation: str
    taken: float = 1.0
    slowdown: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    evidence: str = ""


class KernelResponses(Model, frozen=True, kw_only=True):
    """Launches of one kernel and configuration, and how they respond to perturbations.

    `seconds` is the mean of a launch, unperturbed, `launches` their number in a run, `share` that
    of the time of all kernels that were timed. `shared` is dynamic, in bytes.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    seconds: float
    launches: int
    share: float
    responses: tuple[Response, ...]


class TrialFile(File, frozen=True, kw_only=True, tag="profkit.try/1"):
    """Switches tried on a program.

    `best` names the switches of the fastest row that is proven with the same results, `lower` those
    of a faster one with other random numbers or lower precision; both may be empty. `seconds` is
    what all runs took. `checked` says whether exit code and output of whole runs were compared with
    the unchanged program's, and how that ended. `kernels` are those of a program that no switch
    applies to, whose launches were perturbed; `unperturbed` says what was not possible, and why.
    `written` are files that were written meanwhile.
    """

    command: tuple[str, ...]
    gpu: str | None
    framework: str | None
    unchanged: Unchanged | None
    rows: tuple[TrialRow, ...]
    best: tuple[str, ...]
    lower: tuple[str, ...]
    runs: int
    seconds: float
    budget: float
    checked: str
    failure: str = ""
    interrupted: bool = False
    kernels: tuple[KernelResponses, ...] = ()
    unperturbed: tuple[str, ...] = ()
    written: tuple[Written, ...] = ()

    @property
    def is_decided(self) -> bool:
        """Whether anything is known of a switch, unless none applies."""
        open_ = {"undecided", "unverified", "not tried"}
        states = {row.status for row in self.rows} - {"not applicable"}
        return not states or bool(states - open_)
