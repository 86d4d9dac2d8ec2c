"""The documents of `profkit next` and `profkit log`: experiments, and what became of them."""

import shlex
from collections.abc import Iterator, Sequence

from profkit.comparison.measures import MOVED
from profkit.comparison.repeats import Change
from profkit.experiment.log import Experiments, Log
from profkit.experiment.outcome import Move, Outcome, UnmatchedKernel
from profkit.experiment.prediction import Prediction, Roof, Stop, Untestable
from profkit.experiment.switches import SwitchExperiment, UntriedCause
from profkit.report.catalog import catalog
from profkit.report.floors import WORTH
from profkit.rules.finding import PROMISED, gain_range
from profkit.rules.tried import Tried, best_first
from profkit.timing.latency_view import times_as_fast
from profkit.ui.document import Block, Code, Document, Facts, Heading, Paragraph, Row
from profkit.ui.text import factor, literal, number, percent, plural, shorten

_NAME = 40  # characters of it beside other words, chosen likewise
_KERNEL = 80  # characters of a kernel's name, chosen: it fits a row at 100 columns
_BESIDE = 3  # kernels that were added or removed, chosen: the weightiest
_BY_TIME = "no quantity would show it, only the time"
_SECTIONS = 3  # of ncu, chosen: they fit a row


def experiments_document(experiments: Experiments, measure: str, run: str) -> Document:
    """The outcome of the test, if any, then the next experiment with its `measure`, a command, or
    why there is none; `run` is that to try switches for."""
    blocks: list[Block] = []
    if test := experiments.test:
        blocks.append(Heading(f"{test.outcome.verdict}: {test.prediction.title}"))
        predicted = Row("predicted", _predicted(test.prediction))
        blocks.append(_facts(_kernel(test.prediction), predicted, *_outcome_rows(test.outcome)))
    untestable = tuple(map(_untestable, experiments.untestable))
    switches = experiments.switches
    blocks += _switch_blocks(switches, run) if switches else []
    if experiments.proposed:
        first, *others = experiments.proposed
        rows = [*_prediction_rows(first), Row("measure", measure)]
        for other in others:
            name = shorten(literal(other.kernel), _NAME)
            rows.append(Row("alternative", f"{_predicted(other)}  {other.title}: {name}"))
        if experiments.more:
            shown = len(experiments.proposed) + experiments.more
            rows.append(Row("", f"and {experiments.more} more: --top {shown}"))
        blocks += [
            Heading(f"{'On kernels' if switches else 'Next experiment'}: {first.title}"),
            _facts(_kernel(first), *rows, *untestable),
        ]
    elif stop := experiments.stop:
        blocks += [Heading(_stop_title(stop)), _facts(*_stop_rows(stop))]
    elif untestable or not blocks:
        blocks += [Heading("No experiment can be judged by this report"), _facts(*untestable)]
    return Document("Experiments", tuple(blocks))


def _switch_blocks(switches: SwitchExperiment, run: str) -> Iterator[Block]:
    """What is proven and to be written, else the causes to try switches for; what was decided."""
    others = [f"{row.names}: {row.verdict}" for row in switches.tried if not row.is_proven]
    rows = _listed("tried before", others, "more row")
    command = f"profkit try --from {shlex.quote(run)} -- PROGRAM"
    causes = _listed(
        "answers", [f"{_predicted(each)}  {each.title}" for each in switches.causes], "more cause"
    )
    if edit := switches.edit:
        lines = plural(len(edit.keep), "line")
        yield Heading(f"Next: write {lines}, {edit.headline}")
        yield Code("\n".join(edit.keep))
        rows = [Row("results", edit.reason or "the same"), *rows]
        yield _facts(*rows, *([Row("then", command), *causes] if causes else []))
    elif causes:
        yield Heading(f"Next experiment: {command}")
        yield _facts(*causes, *rows)
    else:
        yield Heading(f"No switch is left to try on {switches.subject or 'the program'}")
        yield _facts(*rows)


def _untestable(finding: Untestable) -> Row:
    name = shorten(literal(finding.kernel), _NAME)
    missing = f"not recorded: {', '.join(finding.missing)}" if finding.missing else _BY_TIME
    return Row("not testable", f"{_predicted(finding)}  {finding.title}: {name} ({missing})")


def _stop_title(stop: Stop) -> str:
    if stop.inconclusive:
        return "No experiment: most rules could not be evaluated"
    return f"Stop: nothing left gains {WORTH:.2f}x"


def _stop_rows(stop: Stop) -> Iterator[Row]:
    if stop.largest is not None:
        yield Row("largest", f"{factor(stop.largest)} for the whole report  {stop.title}")
    elif not stop.inconclusive:
        yield Row("findings", "none has an estimated speedup that counters show")
    yield from _listed("at a roof", list(map(_roof, stop.roofs)), "more kernel")
    if stop.refuted:
        yield Row("refuted", "; ".join(stop.refuted))
    if stop.unevaluated:
        add = "".join(f" --section {name}" for name in stop.sections)
        add = " --set full" if len(stop.sections) > _SECTIONS else add
        rules = f"{stop.unevaluated} of {stop.rules} rules, which lack data"
        yield Row("not known", rules + (f"; record with ncu{add}" if add else ""))
    elif stop.inconclusive:
        yield Row("not known", "no kernel has a duration; record with ncu --set full")


def log_document(log: Log) -> Document:
    """A chain of experiments, the first one first, after the run before it where that is gone."""
    blocks: list[Block] = []
    if log.missing:
        gone = "moved or removed; the experiments before it are not listed"
        blocks.append(Paragraph(f"{log.missing}: {gone}"))
    for place, entry in enumerate(log.experiments, 1):
        if entry.test is None:
            blocks.append(Heading(f"{place}. TRIED: switches of {entry.subject}"))
            blocks.append(_facts(Row("run", entry.run), *_tried_rows(entry.tried)))
            continue
        prediction, made = entry.test.prediction, entry.test.outcome
        blocks.append(Heading(f"{place}. {made.verdict}: {prediction.title}"))
        predicted = Row("predicted", _predicted(prediction))
        rows = Row("run", entry.run), _kernel(prediction), predicted, *_outcome_rows(made)
        blocks.append(_facts(*rows))
    return Document("Log", tuple(blocks or [Paragraph("no experiment was made up to this run")]))


def _tried_rows(rows: Sequence[Tried]) -> Iterator[Row]:
    """The best that is proven, and the switches by every other verdict."""
    best, *_ = best_first(rows)
    if best.is_proven:
        yield Row("proven", f"{best.gain} with {best.names}")
    others = dict.fromkeys(row.verdict for row in best_first(rows) if not row.is_proven)
    for verdict in others:
        yield Row(verdict, ", ".join(row.names for row in rows if row.verdict == verdict))


def _facts(*rows: Row) -> Facts:
    return Facts("", rows, indent=2)


def _kernel(prediction: Prediction) -> Row:
    name = shorten(literal(prediction.kernel), _KERNEL)
    whose = "a chain of kernels with " if prediction.chain else ""
    return Row("kernel", f"{whose}{name}, {number(prediction.duration, 's')} under ncu")


def _prediction_rows(prediction: Prediction) -> Iterator[Row]:
    for place, change in enumerate(prediction.changes):
        yield Row("or" if place else "change", change)
    for each in prediction.expected:
        moves = "rises" if each.rises else "falls"
        yield Row("if right", f"{each.quantity} {moves} from {_value(each.quantity, each.now)}")
    what = "the report" if prediction.chain else "the kernel"
    gain = f"{what} becomes faster: {_predicted(prediction)}"
    own, of_all = (factor(value or 1.0) for value in (prediction.likely, prediction.whole))
    is_promised = (prediction.low or 1.0) >= PROMISED
    if is_promised and prediction.kernels > 1:
        gain += f"; {of_all} for the whole report, if all {prediction.kernels} kernels are fixed"
    elif is_promised and of_all != own and not prediction.chain:
        gain += f"; {of_all} for the whole report"
    yield Row("", gain + (f"; assumes {prediction.assumes}" if prediction.assumes else ""))
    first = prediction.expected[0]
    moves = "rises" if first.rises else "falls"
    refuted = f"{first.quantity} {moves} by at least {MOVED:.0%}, and the time does not change"
    yield Row("refuted if", refuted)


def _predicted(prediction: Prediction | Untestable | UntriedCause) -> str:
    if prediction.likely is None or prediction.low is None or prediction.high is None:
        lacking = prediction.missing if isinstance(prediction, Prediction) else ()
        return f"no estimate (not recorded: {', '.join(lacking)})" if lacking else "no estimate"
    return gain_range(prediction.likely, prediction.low, prediction.high)


def _outcome_rows(made: Outcome) -> Iterator[Row]:
    yield Row("because", made.reason)
    for place, move in enumerate(made.moves):
        yield Row("" if place else "measure", _moved(move))
    if made.speedup is not None and made.change is not Change.incomparable:
        low, high = (made.speedup if end is None else end for end in (made.low, made.high))
        basis = "timed" if made.timed else "by ncu's durations"
        gain = times_as_fast(made.speedup, low, high)
        yield Row("time", f"{made.change}, {gain} {basis}")
    yield from _listed("added", list(map(_beside, made.added)), "more kernel")
    yield from _listed("removed", list(map(_beside, made.removed)), "more kernel")


def _beside(kernel: UnmatchedKernel) -> str:
    time = "unknown" if kernel.duration is None else number(kernel.duration, "s")
    return f"{shorten(literal(kernel.kernel), _KERNEL)}, {time} under ncu"


def _roof(roof: Roof) -> str:
    busy = f"{shorten(literal(roof.kernel), _KERNEL)}: {roof.resource} {percent(roof.busy)} busy"
    return busy + (f"; only using less of it helps: {roof.change}" if roof.change else "")


def _listed(label: str, lines: Sequence[str], more: str) -> list[Row]:
    """Lines below a label, and how many more there are."""
    shown = [Row("" if place else label, line) for place, line in enumerate(lines[:_BESIDE])]
    left = len(lines) - len(shown)
    return [*shown, Row("", f"and {plural(left, more)}")] if left else shown


def _moved(move: Move) -> str:
    if move.before is None or move.after is None:
        return f"{move.quantity} was not recorded on both sides"
    wanted = "rise" if move.rises else "fall"
    values = " → ".join(_value(move.quantity, value) for value in (move.before, move.after))
    return f"{move.quantity} {values} (predicted to {wanted})"


def _value(name: str, value: float | None) -> str:
    return "unknown" if value is None else number(value, catalog().quantities[name].unit)
