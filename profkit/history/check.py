"""A check of a history, `profkit.history-check/1`: series, what is news, the gates that fail."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import structs

from profkit.comparison.gates import FAILED, UNDECIDED, Gate, GateKind, parse_gates
from profkit.core.errors import ProfkitError, UsageError
from profkit.core.typed_file import Count, Model, Output
from profkit.history.changes import Change, Checked, Kind
from profkit.history.record import Series
from profkit.ui.text import percent

_GATES = (GateKind.regression, GateKind.inconclusive, GateKind.incomparable)
_KINDS = {GateKind.inconclusive: {Kind.NOISE}, GateKind.incomparable: {Kind.METHOD, Kind.HARDWARE}}
_KERNELS = 2  # of a cause, chosen: those that take most of the change


class FailedGate(Model, frozen=True):
    """A gate that failed; `undecided`: nothing can be concluded, exit code 3."""

    gate: str
    series: Series
    why: str
    undecided: bool

    def __str__(self) -> str:
        return f"{self.gate}: {self.series.label}: {self.why}"


class CheckFile(Output, frozen=True, tag="profkit.history-check/1"):
    """A check of a history; `recent` is with how many last runs a change is news."""

    recent: Count
    series: tuple[Checked, ...]
    failed: tuple[FailedGate, ...]

    @property
    def news(self) -> list[tuple[Series, Change]]:
        """The changes that are news, real ones first, the slowest first."""
        rows = [
            (checked.series, change)
            for checked in self.series
            for change in checked.changes
            if change.news
        ]
        return sorted(rows, key=lambda row: (row[1].kind is not Kind.REAL, -row[1].change))

    @property
    def exit_code(self) -> int:
        """1 where a series regressed, 3 where what a gate forbids can't be decided, else 0."""
        if any(not failure.undecided for failure in self.failed):
            return FAILED
        return UNDECIDED if self.failed else 0


def history_gates(texts: Iterable[str]) -> tuple[Gate, ...]:
    """The gates of `--fail-on`; raises UsageError for those that a history does not have."""
    gates = parse_gates(texts)
    for gate in gates:
        if gate.kind not in _GATES:
            remedy = f"use {', '.join(_GATES)}"
            raise UsageError(f"--fail-on {gate.kind} is not a gate of a history", remedy)
    return gates


def check(series: Iterable[Checked], gates: Iterable[Gate], recent: int) -> CheckFile:
    """What is news in series that were checked: changes detected with the last `recent` runs."""
    rows = tuple(
        structs.replace(
            checked, changes=tuple(_with_news(change, recent) for change in checked.changes)
        )
        for checked in series
    )
    failed = tuple(failure for gate in gates for failure in _failures(rows, gate))
    return CheckFile(recent, rows, failed)


def _with_news(change: Change, recent: int) -> Change:
    """A change, marked where it is news, with its cause where it is real."""
    if change.runs_since >= recent:
        return change
    real = change.kind is Kind.REAL
    cause = cause_of(change.good.source, change.bad.source) if real else ()
    return structs.replace(change, news=True, cause=cause)


def _failures(series: Sequence[Checked], gate: Gate) -> Iterator[FailedGate]:
    nothing = all(each.reason for each in series)  # no gate passes where nothing was checked
    for each in series:
        if each.reason and (nothing or gate.kind is GateKind.inconclusive):
            yield FailedGate(str(gate), each.series, f"not checked, {each.reason}", True)
        for change in each.changes:
            if change.news and _forbids(gate, change):
                allowed = f", more than {gate.margin * 100:g}%" if gate.margin else ""
                undecided = gate.kind is not GateKind.regression
                yield FailedGate(str(gate), each.series, size_words(change) + allowed, undecided)


def _forbids(gate: Gate, change: Change) -> bool:
    if gate.kind is GateKind.regression:
        return change.kind is Kind.REAL and change.change > gate.margin
    return change.kind in _KINDS[gate.kind] and change.change > 0


def size_words(change: Change) -> str:
    """`2.1% slower`."""
    return f"{percent(abs(change.change))} {'slower' if change.change > 0 else 'faster'}"


def cause_of(good: str, bad: str) -> tuple[str, ...]:
    """`diff` of the profiles of two runs in lines, by what was added to the history; or a line that
    says why the cause is not known."""
    before, after = _profile(good), _profile(bad)
    if before is None or after is None:
        return (f"cause not known: no profile at {bad if before else good}",)
    if before == after:
        return ("cause not known: both runs name one profile",)
    try:
        return _compared(before, after)
    except ProfkitError as error:
        return (f"cause not known: {error.message}",)


def _profile(source: str) -> Path | None:
    """The run that a source is, or is the latencies of, where it still has a report."""
    from profkit.analysis.run_files import LATENCY, SUFFIXES

    path = Path(source)
    folder = path.parent if path.name == LATENCY else path
    try:
        has_report = any(file.suffix in SUFFIXES for file in folder.iterdir())
    except OSError:
        return None
    return folder if has_report else None


def _compared(before: Path, after: Path) -> tuple[str, ...]:
    from profkit.comparison import text as words
    from profkit.comparison.reports import diff

    change = diff(before, after)
    if change.refused:
        return (f"cause not known: {change.obstacle_words}",)
    lines: list[str] = []
    for kernel in change.kernels[:_KERNELS]:
        lines.append(words.headline(kernel))
        if kernel.attribution and (sentence := words.why(kernel.attribution)):
            lines.append(sentence)
    return tuple(lines) or ("cause not known: no kernels in common",)
