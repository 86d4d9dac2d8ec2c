"""Experiments and their outcomes as text: rows of a label and a value, in each format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from profkit.comparison.repeats import Change
from profkit.experiment.log import Experiments, Test
from profkit.experiment.outcome import Move, Outcome
from profkit.experiment.prediction import Expectation, Prediction
from profkit.experiment.times import Scope
from profkit.report.catalog import catalog
from profkit.rules.measures import MOVED
from profkit.ui.markdown import escape
from profkit.ui.terminal import rows_of
from profkit.ui.text import factor, factor_range, literal, number, plural, shorten

Rows = Iterator[tuple[str, str]]
_NAME = 40  # characters of it beside other words, chosen likewise
_KERNEL = 80  # characters of a kernel's name, chosen: it fits a row at 100 columns
_BESIDE = 3  # kernels that were added or removed, chosen: the weightiest
_OF = {
    Scope.kernel: "",
    Scope.call: " of the call,",
    Scope.kernels: " together,",
    Scope.report: " of the report,",
}
NOTHING = "no experiment: no finding has a measure in this report"
_NONE_YET = "no experiment was made up to this run"


def experiments_view(experiments: Experiments, measure: str) -> RenderableType:
    """The outcome of the test, if any, then the next experiment with its `measure`, a command."""
    parts: list[RenderableType] = []
    for title, rows in _sections(experiments, measure):
        parts += [Text(), Text(title, "bold"), rows_of(rows, 2)]
    return Group(*parts[1:]) if parts else Text(NOTHING)


def experiments_markdown(experiments: Experiments, measure: str) -> str:
    """The same as Markdown."""
    lines: list[str] = []
    for title, rows in _sections(experiments, measure):
        lines += [f"## {escape(title)}", ""]
        lines += [
            f"- {label}: {escape(value)}" if label else f"- {escape(value)}"
            for label, value in rows
        ]
        lines.append("")
    return "\n".join(lines) if lines else f"{NOTHING}\n"


def log_view(tests: Sequence[tuple[Path, Test]], missing: Path | None) -> RenderableType:
    """A chain of experiments, the first one first, after the run before it where that is gone."""
    parts: list[RenderableType] = [Text(), Text(_gone(missing))] if missing else []
    for place, (run, test) in enumerate(reversed(tests), 1):
        parts += [
            Text(),
            Text(f"{place}. {test.outcome.verdict}: {test.prediction.title}", "bold"),
            rows_of(
                [("run", str(run)), *_kernel(test.prediction), *_outcome_rows(test.outcome)], 2
            ),
        ]
    return Group(*parts[1:]) if parts else Text(_NONE_YET)


def log_markdown(tests: Sequence[tuple[Path, Test]], missing: Path | None) -> str:
    """The same as a table."""
    if not tests:
        return f"{_NONE_YET}\n"
    lines = [f"{escape(_gone(missing))}\n"] if missing else []
    lines += [
        "| Experiment | Verdict | Predicted | Measured | Run |",
        "|---|---|---|---|---|",
    ]
    for run, test in reversed(tests):
        predicted, made = test.prediction, test.outcome
        lines.append(
            f"| {escape(predicted.title)} | {made.verdict} | {_predicted(predicted)} "
            f"| {_measured(made) or 'not known'} | {escape(str(run))} |"
        )
    return "\n".join(lines) + "\n"


def _gone(run: Path) -> str:
    return f"{run}: moved or removed; the experiments before it are not listed"


def _sections(
    experiments: Experiments, measure: str
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    test = experiments.test
    if test:
        yield (
            f"{test.outcome.verdict}: {test.prediction.title}",
            [*_kernel(test.prediction), *_outcome_rows(test.outcome)],
        )
    first, *others = experiments.proposed or (None,)
    if first:
        rows = [*_kernel(first), *_prediction_rows(first), ("measure", measure)]
        rows += [("else", _in_short(each)) for each in others if each]
        yield f"Next experiment: {first.title}", rows
    elif test:
        yield "Next experiment", [("", NOTHING)]


def _kernel(prediction: Prediction) -> Rows:
    name = shorten(literal(prediction.kernel), _KERNEL)
    whose = "a chain of kernels with " if prediction.chain else ""
    yield "kernel", f"{whose}{name}, {number(prediction.duration, 's')} under ncu"


def _in_short(prediction: Prediction) -> str:
    name = shorten(literal(prediction.kernel), _NAME)
    return f"{_predicted(prediction)}  {prediction.title}: {name}"


def _prediction_rows(prediction: Prediction) -> Rows:
    first, *others = prediction.changes
    yield "change", first
    yield from (("or", other) for other in others)
    for each in prediction.expected:
        yield "if right", _expectation(each)
    what = "the report" if prediction.chain else "the kernel"
    yield "", f"{what} becomes faster: {_predicted(prediction)}{_assumed(prediction)}"
    first_of = "it" if len(prediction.expected) == 1 else "the first of these"
    yield (
        "refuted if",
        f"{first_of} moves so by {MOVED:.0%} or more, and the time does not change",
    )


def _assumed(prediction: Prediction) -> str:
    own, of_all = (factor(value or 1.0) for value in (prediction.likely, prediction.whole))
    whole = f"; {of_all} for the whole report" if of_all != own and not prediction.chain else ""
    return whole + (f"; assumes {prediction.assumes}" if prediction.assumes else "")


def _predicted(prediction: Prediction) -> str:
    if prediction.likely is None or prediction.low is None or prediction.high is None:
        return "how much is not estimated"
    return factor_range(prediction.likely, prediction.low, prediction.high)


def _expectation(each: Expectation) -> str:
    moves = "rises" if each.rises else "falls"
    return f"{each.quantity} {moves} from {_value(each.quantity, each.now)}"


def _outcome_rows(made: Outcome) -> Rows:
    yield "because", made.reason
    for move in made.moves:
        yield "measure" if move is made.moves[0] else "", _moved(move)
    if measured := _measured(made):
        yield "time", measured
    for label, groups in (("added", made.added), ("removed", made.removed)):
        for place, each in enumerate(groups[:_BESIDE]):
            name = shorten(literal(each.kernel), _KERNEL)
            yield "" if place else label, f"{name}, {_seconds(each.duration)} under ncu"
        if len(groups) > _BESIDE:
            yield "", f"and {plural(len(groups) - _BESIDE, 'more kernel')}"


def _measured(made: Outcome) -> str:
    if made.speedup is None or made.change is Change.incomparable:
        return ""
    low, high = (made.speedup if end is None else end for end in (made.low, made.high))
    basis = "timed" if made.timed else "by ncu's durations"
    gain = factor_range(made.speedup, low, high)
    return f"{made.change}, {gain}{_OF[made.scope]} {basis}"


def _seconds(duration: float | None) -> str:
    return "unknown" if duration is None else number(duration, "s")


def _moved(move: Move) -> str:
    if move.before is None or move.after is None:
        return f"{move.quantity} was not recorded on both sides"
    wanted = "rise" if move.rises else "fall"
    values = " -> ".join(_value(move.quantity, value) for value in (move.before, move.after))
    return f"{move.quantity} {values} (was to {wanted})"


def _value(name: str, value: float | None) -> str:
    return "unknown" if value is None else number(value, catalog().quantities[name].unit)
