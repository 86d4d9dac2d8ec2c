"""Options that several verbs share: structs of those that belong together, and these alone.

Options:
  format: Output format
  file (-o, --output FILE): Output file instead of stdout; its extension selects the format.
  force: Replace output files that exist.
  kernel (REGEX): Only kernels whose demangled name matches this regular expression.
  gpu (N): GPU index.
  seed (N): Random seed of the inputs.
  unit: Time unit of a plain list of numbers
  warmup_ms (MS): Minimum warm-up time.
  own (--rules PATH): Additional rules, a file or folder; a rule of a shipped rule's name replaces
    it.
  store (DIR): Folder of the history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NamedTuple, TypeVar

from msgspec import Meta, structs

from profkit.commands.kinds import RulesFile
from profkit.commands.options import put
from profkit.core.errors import BadInput, UsageError
from profkit.core.suggestion import did_you_mean

if TYPE_CHECKING:
    from profkit.core.typed_file import Model
    from profkit.execution.placement import Placement
    from profkit.rules.rule_file import Rule
    from profkit.timing.results import Thresholds
    from profkit.timing.stopwatch import Settings
    from profkit.ui.document import Document

PlainFormat = Literal["terminal", "brief", "json"]
TextFormat = Literal["terminal", "brief", "markdown", "json"]
NumbersFormat = Literal["terminal", "json", "markdown"]  # --help lists them in this order
Timer = Literal["events", "graph", "cupti"]
Cache = Literal["cold", "warm"]
Device = Literal["cuda", "cpu"]
Unit = Literal["s", "ms", "us", "ns"]
Preset = Literal["strict", "default", "permissive"]
Number = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]

Format = TypeVar("Format", bound=str, covariant=True)
_TERMINAL: Any = "terminal"
_MODES = ("auto", "name", "order", "nvtx")
_NAMES = "write `old name: new name`, one per line"


class Advice(NamedTuple):
    """How to look for findings: the rules (None: the shipped ones), what of them to leave out, and
    for how many findings to look up the lines to blame (None: all)."""

    rules: tuple[Rule, ...] | None = None
    disabled: frozenset[str] = frozenset()
    blamed: int | None = None


@dataclass(frozen=True)
class Output(Generic[Format]):
    """Where a verb's result goes, and in which format."""

    format: Format = _TERMINAL
    file: Path | None = None
    force: bool = False

    @property
    def to_file(self) -> bool:
        return self.file is not None

    @property
    def width(self) -> int:
        """Columns of what is written there."""
        from profkit.ui.terminal import console

        return console(to_file=self.to_file).width

    def put(self, content: str) -> None:
        """Write text; raises UsageError where that fails."""
        put(content, self.file, force=self.force)

    def show(self, result: Model, document: Callable[[], Document], *, dense: bool = False) -> None:
        """Write a result: as JSON, or its document; raises UsageError where that fails."""
        from profkit.ui.output import shown

        self.put(shown(result, document, self.format, to_file=self.to_file, dense=dense))

    def lay_out(self, *documents: Document) -> None:
        """Write documents, one after the other; raises UsageError where that fails."""
        from profkit.ui.output import laid_out

        texts = (laid_out(each, self.format, to_file=self.to_file) for each in documents)
        self.put("\n".join(texts))


@dataclass(frozen=True)
class OwnRules:
    """Rules besides the shipped ones."""

    own: RulesFile | None = None

    def rules(self) -> tuple[Rule, ...]:
        """All rules; raises BadInput for rules that can't be used."""
        from profkit.rules.rule_file import shipped_rules, with_own

        return with_own(self.own) if self.own else shipped_rules()


@dataclass(frozen=True)
class RuleOptions(OwnRules):
    """Rules besides the shipped ones, and those left out.

    Options:
      disable (RULE): Disable a rule or a category of rules; repeatable.
    """

    disable: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.own or self.disable)

    def advice(self, blamed: int | None) -> Advice:
        """The advice that is asked for.

        Raises BadInput for rules that can't be used, UsageError for a name that is no rule or
        category.
        """
        for name in self.disable:
            names = {name for rule in self.rules() for name in (rule.name, rule.category)}
            if name not in names:
                remedy = did_you_mean(name, sorted(names), "see `profkit rules list`", most=3)
                raise UsageError(f"--disable {name!r} is not a rule or category", remedy)
        return Advice(self.rules() if self.own else None, frozenset(self.disable), blamed)


@dataclass(frozen=True)
class Matching:
    """The kernels of two reports that are compared.

    Options:
      match (METHOD): Kernel matching: auto, name, order, nvtx, or a YAML file of
        `old name: new name`.
    """

    kernel: str | None = None
    match: str = "auto"

    def method(self) -> tuple[str, Mapping[str, str] | None]:
        """The mode of matching; the new names of kernels by their old ones where a file has them.

        Raises UsageError for another word, BadInput for another file.
        """
        from profkit.core.yaml_files import read_yaml

        if self.match in _MODES:
            return self.match, None
        path = Path(self.match)
        if not path.is_file():
            message = f"--match {self.match!r} is not {', '.join(_MODES)} or a file"
            raise UsageError(message, "see profkit diff --help")
        names = read_yaml(path, _NAMES)
        if not isinstance(names, dict) or not all(isinstance(new, str) for new in names.values()):
            raise BadInput(f"{path}: not names of kernels", _NAMES)
        return "auto", {str(old): new for old, new in names.items()}


@dataclass(frozen=True)
class TimingMethod:
    """How calls are timed.

    Options:
      timer: Timing method
      cache: L2 cache state at the start of each call
    """

    timer: Timer = "events"
    cache: Cache = "cold"

    def settings(self, warmup_ms: float | None = None) -> Settings:
        """The stopwatch's settings, with its own warm-up time unless one is given."""
        from profkit.timing import stopwatch

        chosen = stopwatch.Settings(stopwatch.Timer(self.timer), stopwatch.Cache(self.cache))
        return chosen if warmup_ms is None else structs.replace(chosen, warmup=warmup_ms / 1e3)


@dataclass(frozen=True)
class OnDevice:
    """Where one process measures.

    Options:
      device: Device to time on, cpu with the host clock (default: cuda if available)
      gpu (N): GPU index.
    """

    device: Device | None = None
    gpu: Number | None = None


@dataclass(frozen=True)
class VerdictOptions:
    """What a verdict needs.

    Options:
      margin (SHARE): Smallest relevant difference: 1% or 0.01.
      preset: Strictness of verdicts (--explain shows the thresholds)
    """

    margin: str | None = None
    preset: Preset = "default"

    def thresholds(self) -> Thresholds:
        """The preset's thresholds, with another margin where one is given."""
        from profkit.timing.results import PRESETS

        chosen = PRESETS[self.preset]
        if self.margin is None:
            return chosen
        return structs.replace(chosen, margin=share(self.margin, "--margin"))


@dataclass(frozen=True)
class Place:
    """Where several GPUs measure.

    Options:
      on (PLACE): local or slurm (default: local, where there are several GPUs).
      gpus (N): Use N GPUs at most (default: all; of Slurm 8 jobs).
      partition (NAME): Slurm partition.
      minutes (--time MINUTES): Time limit of a Slurm job (default: 60).
    """

    on: str | None = None
    gpus: Count | None = None
    partition: str | None = None
    minutes: Annotated[int, Meta(ge=3)] | None = None

    def placement(self, where: OnDevice) -> Placement | None:
        """Where to measure; by default on all GPUs of this machine where there are several, None:
        on one. Raises UsageError for options that exclude each other."""
        from profkit.execution.placement import LOCAL, SLURM, placement, visible_gpus

        on = self.on
        if on is None:
            if self.partition is not None or self.minutes is not None:
                raise UsageError("--partition and --time are Slurm's", "give --on slurm too")
            alone = where.gpu is not None or where.device == "cpu" or self.gpus == 1
            if alone or len(visible_gpus()) < 2:
                return None
            on = LOCAL
        if where.gpu is not None:
            message = f"--gpu {where.gpu} names one GPU, --on {on} takes several"
            raise UsageError(message, "leave out one")
        if where.device == "cpu" and on == SLURM:
            raise UsageError("--on slurm measures on GPUs", "leave out --device cpu")
        return placement(on, gpus=self.gpus, partition=self.partition, minutes=self.minutes)


def share(text: str, option: str, example: str = "1% or 0.01") -> float:
    """`1%` or `0.01` as a share; raises UsageError for anything that is no share below 1."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise UsageError(f"{option} {text!r} is not a share", f"write {example}")
    return value
