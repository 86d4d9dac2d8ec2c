"""The last part of a written baseline: how to repeat it, what it does not tell, methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from profkit.core.typed_file import known
from profkit.study.json import BaselineFile
from profkit.study.plan_format import Run
from profkit.study.report_model import Written
from profkit.study.written import words
from profkit.ui.document import (
    Block,
    Bullets,
    Code,
    Heading,
    Paragraph,
    Table,
    cells,
    unmarked,
    verbatim,
)
from profkit.ui.text import percent, plural


def reproducibility(written: Written) -> Iterator[Block]:
    """Fingerprints, commands, what a repetition takes and costs, SHA-256 of what was imported."""
    summary = written.summary
    yield Heading(2, "Reproducibility")
    yield Paragraph(
        "This is the command that made the data, absolute paths as the names at their ends:"
    )
    yield Code(words.command(summary.command))
    resumed = _resumed(summary)
    if resumed:
        when = ", ".join(unmarked(run.created) for run in resumed)
        yield Paragraph(f"It was resumed {plural(len(resumed), 'time')} ({when}, UTC):")
        yield Code("\n".join(words.command(run.command) for run in resumed))
    recording = ", and the recording's name the path to it" if written.steps_title else ""
    yield Paragraph(f"Afterwards, where DIR is the baseline's folder{recording}:")
    yield Code(f"profkit audit DIR/summary.json\n{_report_command(written)}")
    yield Bullets(tuple(_circumstances(written)))
    if summary.fingerprints:
        yield Table(
            "Fingerprints of the environment: SHA-256 over its JSON with sorted keys",
            ("SHA-256", "dtype", "Commit of the target"),
            cells([
                [verbatim(sha), unmarked(str(known(one.dtype))), _commit(known(one.commit))]
                for sha, one in sorted(summary.fingerprints.items())
            ]),
            words=3,
        )  # fmt: skip
    if written.sources:
        yield Table(
            "Files that the cells were made of",
            *words.known(("Cell", "File", "SHA-256", "Taken, as it says"), cells([
                [verbatim(name), verbatim(one.file), verbatim(one.sha256),
                 unmarked(one.taken or words.NONE)]
                for name, one in written.sources.items()
            ])),
            words=4,
        )  # fmt: skip


def _report_command(written: Written) -> str:
    """The command that writes this report, the recording of the ladder by its last name."""
    given = ["profkit", "baseline", "report", "DIR"]
    given += ["--price", f"{written.price:g}"] if written.price is not None else []
    given += ["--ablation", written.steps_title] if written.steps_title else []
    return words.command([*given, "-o", "DIR/report.md"])


def _resumed(summary: BaselineFile) -> Sequence[Run]:
    """The runs that went on with what the first command began."""
    runs = summary.runs or ()
    return runs[1:] if runs and runs[0].command == summary.command else runs


def _commit(told: Mapping[str, str | bool] | None) -> str:
    if not told:
        return "no repository"
    dirty = ", with changes that are not in it" if told["dirty"] else ""
    return f"{verbatim(str(told['commit']))}{dirty}"


def _circumstances(written: Written) -> Iterator[str]:
    summary = written.summary
    yield f"Made with profkit {summary.profkit}; derived {unmarked(summary.created)} (UTC)."
    seconds = summary.seconds
    if not seconds:
        yield "What measuring took is not known, and so not what it costs."
        return
    told = f"Measuring took {_duration(seconds)}; expect the same for a repetition"
    if written.cost is None:
        yield (
            f"{told}. What that costs: {seconds / 3600:.3g} h times the price of an hour "
            "(`--price`)."
        )
    else:
        yield f"{told}, {written.cost:,.2f} $ at {written.price:g} $ an hour."


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def limitations(written: Written) -> Iterator[Block]:
    """What a reader must not conclude."""
    yield Heading(2, "Limitations")
    yield Bullets(tuple(_limits(written)))


def _processes(runs: Sequence[Run] | None) -> str:
    """What cells have in common with each other, and with no repetition."""
    other = "another machine of the same product differs"
    common = "what a process has in common (addresses, the driver's state) is common to"
    counts = [run.processes for run in runs or ()]
    if counts == [1]:
        return f"One process on one machine measured everything: {common} all cells, and {other}."
    known_counts = [count for count in counts if count is not None]
    if not counts or len(known_counts) < len(counts):
        return (
            "One machine measured everything; in how many processes is not recorded. W"
            f"{common[1:]} its cells, and {other}."
        )
    return (
        f"{plural(sum(known_counts), 'process')} of one machine measured it, in "
        f"{plural(len(counts), 'run')}: {common} the cells of a shape that took turns, not to all, "
        f"and {other}."
    )


def _origin(summary: BaselineFile, imported: bool) -> Iterator[str]:
    """Whose the samples are, and what they have in common."""
    if imported:
        yield (
            "The samples are others': how they were taken, and on which machine, is what their "
            "files and the matrix say, and no more."
        )
    else:
        yield _processes(summary.runs)
    for backend in summary.backends:
        if backend.gone:
            yield (
                f"{verbatim(backend.name)} could not be had any more when its last cells were "
                f"to be measured ({unmarked(backend.gone)}); the others are of the version that "
                "is told."
            )


def _in_the_times(written: Written) -> Iterator[str]:
    """What is in them besides the calls."""
    empty = [row for row in written.timed if row.empty]
    if empty:
        reads = median(row.empty or 0.0 for row in empty)
        most = max((row.empty or 0.0) / (row.seconds or 1.0) for row in empty)
        yield (
            f"The timer reads {words.time(reads)} of nothing. It is in every time and not taken "
            f"off: up to {percent(most)} of a median, so that rates of short calls are too low."
        )
    if written.evidence.capped:
        yield (
            "At the power cap the clock falls while calls go on, so that medians depend on how "
            "long a block is: cells of long calls are nearer to a steady load than those of short "
            "ones, and exponents hold some of that."
        )


def _limits(written: Written) -> Iterator[str]:
    summary, timed = written.summary, written.timed
    imported = any(row.status.value == "imported" for row in timed)
    yield from _origin(summary, imported)
    if any(one.said for one in summary.fingerprints.values()):
        yield (
            f"The GPU ({words.device(written)}), the versions, the peak memory and the dates are "
            "what the files say; nobody checked them."
        )
    elif summary.gpu_from == "said":
        yield (
            f"The GPU is what was said of the data ({words.device(written)}); nothing in them "
            "shows it."
        )
    if summary.gpu is None:
        yield "It was not measured on a GPU: rates have no peak to be held against."
    if any(row.is_timed and row.sm_clock is None for row in written.rows) and summary.gpu:
        yield (
            "The SM clock is unknown, so shares are of the datasheet's peak at its own clock; a "
            "chip that ran slower or faster is judged by the wrong roof."
        )
    if any(row.verified is False for row in timed):
        yield "The datasheet peak is from memory: nobody looked it up."
    caches = {row.cache for row in timed if row.timer != "wall"}
    if "cold" in caches:
        yield (
            "L2 was flushed before each call; in a program that just wrote its inputs, calls are "
            "faster."
        )
    if "" in caches or imported:
        yield (
            "Whether L2 was cold is not known; where the bytes came faster than DRAM has them, it "
            "was warm, and bandwidth is no share of DRAM's."
        )
    yield from _in_the_times(written)
    if any(row.fewer for row in timed):
        few = sum(bool(row.fewer) for row in timed)
        yield f"{plural(few, 'cell')} have fewer samples than asked for, to keep the budget."
    if not imported:
        yield "Inputs are random; the time of a kernel may depend on its data (zeros are faster)."
    yield "Bytes are the least that a call must move. What it does move, only a profile tells."
    yield "Shapes that are not in the matrix were not measured, and nothing is said of them."


_METHODS = (
    "**Interval of the median**: Student's t over the logarithms of the blocks' medians, at 95%, "
    "from six blocks of ten samples on that took turns, widened by one tick at either end; none "
    "where blocks are seen to depend on each other. It takes blocks for independent: what lasts "
    "over several of them, unseen among eight, makes it too narrow (docs/statistics.md).",
    "**Interval within the run**: percentile bootstrap of the median over all samples, 10,000 "
    "resamples with a fixed seed of its own. It states no confidence level: what changes more "
    "slowly than the run lasts is the same in all of its samples. Widened by the lag-1 "
    "autocorrelation of ranks and by one tick at either end; refused where the halves of a run "
    "differ by 1% or more and beyond chance, and where the lower 95% limit of effective N is "
    "below six, that is N (1 - R) / (1 + R) with R = r + 1.645 √((1 - r²) / N), so that an "
    "effective N of ten may be refused. It claims nothing where over a tenth of the samples may "
    "hold gaps of the host: without these the median is up to 5% of the ranks lower, half of what"
    " the interval of 100 samples reaches to either side. Efron and Tibshirani, An Introduction "
    "to the Bootstrap, 1993; Hoefler and Belli, Scientific Benchmarking of Parallel Computing "
    "Systems, SC 2015.",
    "**Independence**: rank version of von Neumann's ratio. Bartels, JASA 77 (1982), 40-46. "
    "Effective N is N (1 - r) / (1 + r), 1 at least, where the ranks' lag-1 autocorrelation is "
    "beyond chance; r is that times 1 + 4/N (Marriott and Pope, Biometrika 41 (1954), 390-402).",
    "**Percentiles**: given from as many samples as bound them at 95% on both sides. Conover, "
    "Practical Nonparametric Statistics, 3rd ed., section 3.2.",
    "**Outliers**: beyond 3.5 scaled median absolute deviations; counted, never dropped. "
    "Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993.",
    "**Verdicts**: a t-interval over the blocks' log ratios (Hodges-Lehmann estimates over the "
    "samples of two blocks), against a margin. Where the ratios of successive blocks depend on "
    "each other beyond chance (the same test over ranks, at 2.5%), they count as their effective "
    "N, by the same formula but four at least, in the standard error and in the degrees of "
    "freedom, so that the interval is wider. Holm, Scandinavian Journal of Statistics 6 (1979), "
    "65-70, over all comparisons.",
    "**Effect size**: Cliff, Psychological Bulletin 114 (1993), 494-509; in words by Romano et "
    "al., 2006.",
    "**Work**: attention has 4·B·H·S²·D FLOP forward, half of it causal, 2.5 times backward; its "
    "least bytes are its inputs and outputs once.",
    "**Roofline**: Williams, Waterman and Patterson, CACM 52 (2009), 65-76. The dense peak at "
    "a clock is SMs times FLOP per cycle and SM times that clock; where cycles were counted, those "
    "of a call (a block's mean time, a tenth of its samples cut at either end, at the clock over "
    "it; the median of the blocks) in its median time.",
    "**SM clock**: the mean over the samples of a block, by the SMs' cycle counters and the "
    "device's timer, both read by a kernel before and after them; where they can't be read, what "
    "the driver told just before the block.",
)


def methods() -> Iterator[Block]:
    """How the numbers are worked out, and where that is from."""
    yield Heading(2, "Appendix: methods")
    yield Bullets(_METHODS)
    yield Paragraph(
        "docs/statistics.md of profkit has the coverage of each interval as it was measured by "
        "simulation."
    )
