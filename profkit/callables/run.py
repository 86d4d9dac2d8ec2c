"""What was measured of callables, what can be asked of it, and how it shows itself."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.capture.correctness import Status, Verdict
from profkit.core.atomic_file import write_atomic
from profkit.core.errors import EnvironmentProblem, TargetFailed, UsageError
from profkit.timing import latency_view as view
from profkit.timing import results
from profkit.timing.latency_format import LatencyFile, Pair, Series
from profkit.timing.verdict import reason_words
from profkit.ui import document as doc
from profkit.ui.text import percent

if TYPE_CHECKING:
    import pandas as pd

    from profkit.analysis.roofline_figure import Roofline
    from profkit.page.report import Report
    from profkit.rules.checklist import Checklist

_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")
WRONG, PASSED, UNCHECKED = "WRONG", "PASSED", "UNCHECKED"
_STYLES = {
    "IMPROVED": doc.Style.good, "PASSED": doc.Style.good, "REGRESSED": doc.Style.bad,
    "WRONG": doc.Style.bad, "INVALID": doc.Style.bad, "INCONCLUSIVE": doc.Style.warning,
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One measurement. In a notebook and in a terminal it shows itself.

    `check` compares the result with the reference, None without one; of several callables it is
    that of the last, or the one that is wrong. `times` has everything that was measured, None for
    a wrong result; `recording` what ncu recorded. `notes` say what was done otherwise than asked.
    """

    name: str
    check: Verdict | None
    times: LatencyFile | None
    recording: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """ "IMPROVED", "REGRESSED", "SAME", "INCONCLUSIVE" or "INVALID" on the last of several
        callables against the first; of one "PASSED" or "UNCHECKED". "WRONG" for a wrong result."""
        if self.check and self.check.status is Status.failed:
            return WRONG
        if self.times and self.times.pairs:
            return self.times.pairs[-1].comparison.verdict.name
        return PASSED if self.check else UNCHECKED

    @property
    def latencies(self) -> Mapping[str, Series]:
        """The samples and statistics of each callable by its name, in seconds.

        Raises TargetFailed for a wrong result, which is not timed.
        """
        if self.times is None:
            reason = self.check.reason if self.check else ""
            raise TargetFailed(f"{self.name}: not timed, a wrong result: {reason}", "fix it first")
        return {timed.label: timed for timed in self.times.series}

    @property
    def latency(self) -> Series:
        """Those of the only callable, or of the last of several."""
        return list(self.latencies.values())[-1]

    @property
    def median(self) -> float:
        """The median time of a call (s)."""
        return self.latency.summary.median

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the median (s): at 95% between blocks, else within the run without a
        level (`latency.without_level` says why); None where there is none."""
        interval = self.latency.interval
        return (interval.low, interval.high) if interval else None

    @property
    def comparison(self) -> Pair:
        """The comparison of the last callable with the first: speedup, interval, evidence.

        Raises UsageError for a Run of one callable.
        """
        if not self.times or not self.times.pairs:
            raise UsageError(f"{self.name} was not compared", "profkit.compare(f, g, x)")
        return self.times.pairs[-1]

    @property
    def remarks(self) -> Sequence[str]:
        """The notes, and what limits the validity of the times."""
        lines = self.times.warnings if self.times else ()
        return (
            *self.notes,
            *(_OPTION.sub(lambda option: _keyword(option[1]), line) for line in lines),
        )

    @cached_property
    def report(self) -> Report:
        """The report that ncu recorded. Raises EnvironmentProblem where none was recorded."""
        from profkit.page.report import load

        if self.recording is None:
            raise EnvironmentProblem(
                f"{self.name}: nothing was recorded with ncu",
                f"profkit.profile({self.name.split()[-1]}, ..., ncu=True)",
            )
        return load(self.recording)

    @property
    def kernels(self) -> pd.DataFrame:
        """The table of the recorded launches; raises as `report`."""
        return self.report.kernels

    def checklist(self, **options: Any) -> Checklist:
        """The findings on the recorded kernels, as `Report.checklist`; raises as `report`."""
        return self.report.checklist(**options)

    def roofline(self, **options: Any) -> Roofline:
        """The recorded kernels under their roofs with the measured times, as `Report.roofline`."""
        with tempfile.TemporaryDirectory() as folder:
            if self.times and "latency" not in options:
                options["latency"] = self.save(Path(folder) / "latency.json")
            return self.report.roofline(**options)

    def save(self, path: str | Path) -> Path:
        """Write times and verdict as `profkit.time/1`, which `profkit time --from` reads.

        Raises TargetFailed for a wrong result, EnvironmentProblem where the file can't be written.
        """
        from profkit.core.typed_file import encode

        path = Path(path)
        self.latencies  # noqa: B018  (raises)
        assert self.times is not None
        try:
            write_atomic(path, encode(self.times))
        except OSError as error:
            raise EnvironmentProblem(f"{path} can't be written: {error.strerror}") from error
        return path

    @property
    def document(self) -> doc.Document:
        """What it shows: verdict, times, method and check, and what to know of them."""
        verdict = doc.in_style(self.verdict, _STYLES.get(self.verdict, doc.Style.plain))
        head = doc.Lines((doc.styled(doc.strong(self.name), "  ", verdict),))
        return doc.Document(
            self.name, (head, doc.Facts("", tuple(_rows(self))), *map(doc.Note, self.remarks))
        )

    def __repr__(self) -> str:
        from profkit.ui.terminal import document_terminal

        return document_terminal(self.document, to_file=True).rstrip()

    def _repr_html_(self) -> str:
        from profkit.ui.html import document_cell

        return document_cell(self.document.blocks)

    def _repr_markdown_(self) -> str:
        from profkit.ui.markdown import document_markdown

        return document_markdown(self.document)


def _keyword(option: str) -> str:
    """The keyword of the meaning of an option of `profkit time`: `warmup-ms`."""
    return option.removeprefix("--").replace("-", "_")


def _rows(run: Run) -> Iterator[doc.Row]:
    if run.times:
        for pair in run.times.pairs:
            yield from _of_pair(pair, run)
        if not run.times.pairs:
            yield doc.Row(
                "Median", view.variant_line(run.latency).removeprefix(f"{run.latency.label}  ")
            )
            yield doc.Row("Interval", view.marked_interval(run.latency))
        target, gpu = run.latency.latency.target, run.latency.latency.gpu
        if target.words:
            yield doc.Row(
                "Arguments", f"{target.words}{f', {target.dtype}' if target.dtype else ''}"
            )
        methods = {view.method(each): each.label for each in run.latencies.values()}
        several = (f"{label}: {way}" for way, label in methods.items())
        yield doc.Row("Method", "; ".join(several if len(methods) > 1 else methods))
        if gpu:
            yield doc.Row("GPU", str(gpu.name))
    if run.check:
        yield doc.Row("Check", f"{run.check.status.value}: {run.check.evidence}")
    elif run.times:
        yield doc.Row("Check", "not checked: no reference=")
    if run.recording:
        yield doc.Row("ncu", f"{run.recording}, recorded in a child process")


def _of_pair(pair: Pair, run: Run) -> Iterator[doc.Row]:
    comparison, times = pair.comparison, run.times
    assert times is not None
    yield doc.Row("Change", view.pair_line(pair).removesuffix(comparison.verdict.name).rstrip())
    margin = f"{reason_words(comparison.reason)}; margin {view.margin_words(comparison.margin)}"
    if comparison.verdict in {results.Verdict.SAME, results.Verdict.INCONCLUSIVE}:
        margin += f"; smallest detectable slowdown: {percent(comparison.detectable)}"
    yield doc.Row("Verdict", "; ".join([margin, *comparison.details]))
    options = view.settling_options(pair, times.thresholds)
    if options:
        names = map(_keyword, options[::2])
        words = zip(names, options[1::2], strict=True)
        keywords = (f"{name}={word if word.isdigit() else repr(word)}" for name, word in words)
        yield doc.Row("To settle it", ", ".join(keywords))
