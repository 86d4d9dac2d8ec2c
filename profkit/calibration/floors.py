"""A/A floors: differences between runs of one build, as bounds for future runs; their file,
`profkit.calibrate/1`, and its document."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from profkit.core.distributions import chi_square_quantile, normal_quantile
from profkit.core.errors import EnvironmentProblem
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import File, Model
from profkit.core.version import __version__
from profkit.timing.floor import Floor
from profkit.timing.latency import analyze_latency, compare_with
from profkit.timing.latency_format import Latency
from profkit.timing.measurement import Repeats
from profkit.timing.results import Verdict
from profkit.ui import document as doc
from profkit.ui.text import plural

# Chosen: an interval this many times the median width belongs to a disturbed comparison.
_DISTURBED_WIDTH = 5
EXCEEDED = 0.01
"""The share of comparisons of one build with itself that may differ by more than the floor."""
CONFIDENCE = 0.95
"""How surely the floor holds that share, whatever runs it was measured on."""

_LARGEST = math.log(1e9)  # chosen: keeps expm1 finite for runs that differ by magnitudes


def difference_bound(log_ratios: Sequence[float]) -> float:
    """The relative difference that a floor must be, from log ratios of runs of one build.

    A normal tolerance limit: their standard deviation about 0, which is known to be their mean,
    enlarged by `bound_factor` of their number.
    """
    ratios = np.asarray(log_ratios, dtype=np.float64)
    return _relative(bound_factor(ratios.size) * math.sqrt(float(np.mean(ratios**2))))


def run_bound(medians: Sequence[float]) -> float:
    """The same from medians (s) of at least two runs, any two of which may be compared."""
    scatter = float(np.log(medians).std(ddof=1))
    return _relative(bound_factor(len(medians) - 1) * math.sqrt(2) * scatter)


def enlarged_bound(bound: float, freedom: int, enlarged: int) -> float:
    """The bound for the same scatter estimated with more degrees of freedom."""
    return _relative(math.log1p(bound) * bound_factor(enlarged) / bound_factor(freedom))


def bound_factor(freedom: int) -> float:
    """The tolerance limit in standard deviations, as estimated with that many degrees of freedom.

    The normal quantile that 1% exceed to either side, times what the standard deviation may be
    larger than its estimate at 95% (chi square): 41 at 1, 7.5 at 3, 4.4 at 8, 2.6 at infinity.
    """
    quantile = normal_quantile(1 - EXCEEDED / 2)
    return quantile * math.sqrt(freedom / chi_square_quantile(1 - CONFIDENCE, freedom))


def _relative(log_ratio: float) -> float:
    return math.expm1(min(log_ratio, _LARGEST))


class Differences(Model, frozen=True):
    """Differences between runs of one build, as shares of a latency.

    `largest` is the largest difference among comparisons that nothing disturbed, `bound` what 1% of
    those to come exceed at most (at 95% confidence, see `difference_bound`); `disturbed` counts the
    others, whose intervals are more than five times as wide as the typical one, and which the
    default thresholds leave open. `verdicts` counts what these make of all comparisons: a REGRESSED
    or an IMPROVED is a false alarm.
    """

    largest: float
    bound: float
    disturbed: int
    all: tuple[float, ...]
    typical_width: float
    verdicts: dict[str, int]

    @property
    def floor(self) -> float:
        """The A/A floor: smaller differences are noise."""
        return max(self.largest, self.bound)


def differences(
    pairs: Sequence[tuple[Latency, Latency]], typical_width: float | None = None
) -> Differences:
    """The differences within pairs of latencies of one build, with interleaved blocks.

    `typical_width` (log of upper over lower end) is that of other pairs, for pairs too few to tell.
    Raises EnvironmentProblem where all were disturbed.
    """
    comparisons = [
        compare_with(analyze_latency(a), [analyze_latency(b)])[0].comparison for a, b in pairs
    ]
    widths = [math.log(pair.high / pair.low) for pair in comparisons]
    typical = median(widths) if typical_width is None else typical_width
    calm = [
        pair
        for pair, width in zip(comparisons, widths, strict=True)
        if width <= _DISTURBED_WIDTH * typical
        or pair.verdict in {Verdict.REGRESSED, Verdict.IMPROVED}
    ]
    if not calm:
        raise EnvironmentProblem(
            "every comparison was disturbed: no A/A floor", "calibrate again on an idle GPU"
        )
    return Differences(
        largest=max(max(pair.speedup, 1 / pair.speedup) - 1 for pair in calm),
        bound=difference_bound([math.log(pair.speedup) for pair in calm]),
        disturbed=len(comparisons) - len(calm),
        all=tuple(pair.speedup - 1 for pair in comparisons),
        typical_width=typical,
        verdicts=dict(Counter(pair.verdict.name for pair in comparisons)),
    )


class Sharper(Model, frozen=True):
    """The floor, a share, that more pairs of processes would give at the same scatter."""

    processes: int
    bound: float


def sharper(between: Differences) -> tuple[Sharper, ...]:
    """The floors between processes that two and four times as many pairs would give."""
    pairs = len(between.all) - between.disturbed
    return tuple(
        Sharper(times * len(between.all), enlarged_bound(between.bound, pairs, times * pairs))
        for times in (2, 4)
    )


def between_runs(runs: Sequence[Latency]) -> float:
    """What two runs of one build differ by, a share: the bound from their medians, see `run_bound`,
    or the largest difference seen."""
    medians = [float(np.median(run.samples)) for run in runs]
    return max(run_bound(medians), max(medians) / min(medians) - 1)


class CalibrationFile(File, frozen=True, kw_only=True, tag="profkit.calibrate/1"):
    """Differences between runs of one build, shares of a latency; `sharper` are the floors between
    processes that more pairs of them would give."""

    profkit: str
    floor: Floor
    within_process: Differences
    between_processes: Differences
    seconds: float
    kept: bool
    sharper: tuple[Sharper, ...]


def calibrate(repeats: Repeats) -> CalibrationFile:
    """The floors of A/A runs; raises EnvironmentProblem where all comparisons were disturbed."""
    within = differences(repeats.within)
    between = differences(repeats.between, within.typical_width)
    first = repeats.runs[0]
    gpu, timer, cache = first.measured_with
    floor = max(within.floor, between.floor)
    return CalibrationFile(
        profkit=__version__,
        floor=Floor(
            gpu=gpu,
            timer=timer,
            cache=cache,
            name=first.gpu.name or "the CPU",
            within_process=within.floor,
            between_processes=floor,
            between_runs=max(floor, between_runs(repeats.runs)),
            comparisons=len(repeats.within),
            processes=len(repeats.between),
            created=timestamp(),
        ),
        within_process=within,
        between_processes=between,
        seconds=repeats.seconds,
        kept=False,
        sharper=sharper(between),
    )


def calibration_document(file: CalibrationFile, saved: Path | None) -> doc.Document:
    """The floors, and the comparisons behind them."""
    floor, within, between = file.floor, file.within_process, file.between_processes
    inside = plural(floor.comparisons, "A/A comparison")
    across = f"{plural(floor.processes, 'pair')} of processes"
    after = f"from the medians of {2 * floor.processes} runs"
    rows = (
        doc.Row("within a process", _origin(floor.within_process, inside, within)),
        doc.Row("between processes", _origin(floor.between_processes, across, between)),
        doc.Row("between saved runs", f"{floor.between_runs:6.2%}   {after}"),
    )
    notes = (
        f"At most {EXCEEDED:.0%} of comparisons of a build with itself exceed these, at "
        f"{CONFIDENCE:.0%} confidence.",
        *_plans(file),
    )
    title = f"{floor.name}: A/A floors (smaller differences are noise on this GPU)"
    blocks: list[doc.Block] = [
        *(doc.Heading(title, 1), doc.Lines((), gap=True)),
        *(doc.Facts("", rows), doc.Lines(notes, gap=True)),
    ]
    if disturbed := within.disturbed + between.disturbed:
        blocks.append(
            doc.Note(
                f"{plural(disturbed, 'comparison')} excluded as disturbed: intervals over "
                f"{_DISTURBED_WIDTH} times the median width"
            )
        )
    last = (f"Time  {file.seconds:.1f} s", *([f"Saved {saved}"] if saved else []))
    return doc.Document(title, (*blocks, doc.Lines(last, gap=True)))


def _origin(floor: float, comparisons: str, differences: Differences) -> str:
    counts = sorted(differences.verdicts.items())
    verdicts = ", ".join(f"{count} {name}" for name, count in counts)
    return f"{floor:6.2%}   from {comparisons}, largest {differences.largest:.2%}: {verdicts}"


def _plans(file: CalibrationFile) -> list[str]:
    """Lower floors with more pairs; no floor is below the one within a process."""
    plans, known = [], file.floor.between_processes
    for plan in file.sharper:
        bound = max(plan.bound, file.floor.within_process)
        if f"{bound:.2%}" != f"{known:.2%}":
            plans.append(f"{bound:.2%} (--processes {plan.processes})")
            known = bound
    return [f"At the same scatter, more pairs would give about {' and '.join(plans)}."] * bool(
        plans
    )
