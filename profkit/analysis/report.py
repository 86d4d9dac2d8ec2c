"""A report in Python: `profkit.load("x.ncu-rep")`."""

from __future__ import annotations

import dataclasses
import fnmatch
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec import structs

from profkit.analysis.run_files import EXPORT, latencies_of, one_report, timeline_of, variants_of
from profkit.core.errors import BadInput, NothingMatches, UsageError
from profkit.core.extras import require
from profkit.core.suggestion import did_you_mean
from profkit.core.typed_file import part
from profkit.hardware.gpus import Gpu
from profkit.report import source_lines
from profkit.report.catalog import Recorded, catalog
from profkit.report.names import kernel_pattern
from profkit.report.phases import SOURCES, KernelTimeline, kernel_timeline, series
from profkit.report.quantities import evaluate, request
from profkit.report.reader import RawReport, every_metric, read
from profkit.report.session import Session
from profkit.report.source_lines import (
    Code,
    LineCost,
    Place,
    counted,
    hottest,
    instructions,
    source_text,
)
from profkit.report.summary import NAME_WIDTH, LaunchSummary, ReportSummary, summarize
from profkit.ui.text import extent, literal, shorten

if TYPE_CHECKING:
    import pandas as pd

    from profkit.analysis.roofline_figure import Roofline
    from profkit.analysis.source_view import SourceView
    from profkit.report.action import Action
    from profkit.rules.checklist import Checklist
    from profkit.rules.engine import Trial
    from profkit.rules.headroom import Headroom
    from profkit.rules.rule_file import Rule
    from profkit.rules.samples import Sampled
    from profkit.timing.variants import Variants

_PLACES = 3  # locations of a finding, chosen: they fit two lines at 100 columns
_BLAMED = 64  # places by which findings are compared, chosen: the instructions of an unrolled loop
_ALIKE = 0.4  # chosen below difflib's 0.6: a kernel is asked for by a part of its name


class Kernel:
    """One recorded launch.

    >>> kernel = report.kernel("transpose")
    >>> kernel.duration, kernel["dram_busy"]
    """

    def __init__(self, report: Report, summary: LaunchSummary, action: Action) -> None:
        self.summary = summary
        self._report = report
        self._action = action

    @property
    def name(self) -> str:
        """The demangled name."""
        return self.summary.name

    @property
    def duration(self) -> float:
        """Seconds; NaN when ncu's counters failed."""
        return self.summary.duration

    @property
    def missing(self) -> Mapping[str, str]:
        """The catalog quantities that this launch lacks, each with the reason."""
        return self.summary.missing

    @property
    def warnings(self) -> tuple[str, ...]:
        """Invalid measurements of this launch: impossible values, contradictory counters."""
        return self.summary.warnings

    @property
    def headroom(self) -> Headroom | None:
        """What its kernel's present DRAM bytes and FLOP allow: `factor`, and the `floor` there.

            >>> report.kernel("transpose").headroom.factor

        None where its DRAM traffic is unknown.
        """
        groups = self._report.summary.groups
        group = next(group for group in groups if self.summary in group.launches)
        return None if self.summary.failed else self._report._findings.headroom_of(group)

    @property
    def doubtful(self) -> frozenset[str]:
        """The catalog quantities of this launch with impossible values."""
        return self.summary.impossible

    def __getitem__(self, name: str) -> float:
        """A catalog quantity in its unit, NaN where missing; UsageError for an unknown name."""
        _known(name, catalog().quantities)
        return self.summary.get(name)

    def __repr__(self) -> str:
        name = shorten(literal(self.summary.launch.function or self.name), NAME_WIDTH)
        return f"<Kernel {self.summary.index}: {name}, {self.duration * 1e6:.1f} µs>"

    def stalls(self) -> pd.DataFrame:
        """Warp states, largest first: `reason`, `cycles` per issued instruction, `share` of all.

            >>> kernel.stalls().head(3)

        Raises BadInput where the launch did not record them.
        """
        require("Kernel.stalls()", "pandas")
        import pandas as pd

        if not self.summary.stalls:
            raise BadInput(
                f"{self._report.path}: launch {self.summary.index} has no warp stall data",
                "record with `ncu --section WarpStateStats`",
            )
        rows = [(item.reason, item.cycles, item.share) for item in self.summary.stalls]
        return pd.DataFrame(rows, columns=["reason", "cycles", "share"])

    def instructions(self, *metrics: str) -> pd.DataFrame:
        """Per program counter: `address`, `sass`, `file`, `line` and a column for each metric.

            >>> kernel.instructions("samples", "instructions_executed")

        Metrics are the catalog's line quantities, or ncu's names. Raises UsageError for an unknown
        one and BadInput where the launch recorded none of them.
        """
        require("Kernel.instructions()", "pandas")
        import pandas as pd

        lines = catalog().lines
        names = {metric: _recorded_name(metric, lines) for metric in metrics}
        rows = [
            {
                **part(row, "address", "sass", "file", "line"),
                **{metric: row.values.get(metric, 0.0) for metric in metrics},
            }
            for row in instructions(self._action, names)
        ]
        if not rows:
            raise self._not_recorded(", ".join(metrics), lines)
        return pd.DataFrame(rows)

    def source_lines(self, metric: str) -> pd.DataFrame:
        """A metric by source line, largest first: `file`, `line`, `value`, `share` of the launch.

            >>> kernel.source_lines("samples").head(3)

        Instructions without a known line are together under file "" and line 0. Raises as
        `instructions` does.
        """
        frame = self.instructions(metric)
        values = frame.groupby(["file", "line"])[metric].sum().sort_values(ascending=False)
        lines = values.rename("value").reset_index()
        total = float(values.sum())
        return lines.assign(share=lines["value"] / total if total else 0.0)

    def time_series(self, metric: str) -> pd.DataFrame:
        """A sampled metric over time: `time` in seconds, `value` in SI units.

            >>> kernel.time_series("tensor_busy").plot(x="time", y="value")

        ncu samples from before the launch starts until after it ends, so both ends may be idle.
        Metrics are the catalog's series, or the end of ncu's name. Raises UsageError for an
        unknown one and BadInput where the launch did not record it.
        """
        require("Kernel.time_series()", "pandas")
        import pandas as pd

        samples = series(self._action, _recorded_name(metric, catalog().series))
        if samples is None:
            raise self._not_recorded(metric, catalog().series)
        return pd.DataFrame({"time": samples.times, "value": samples.values})

    def timeline(self) -> KernelTimeline | None:
        """Utilization over time, and the kernel's prologue, steady state and tail.

            >>> kernel.timeline().share("tail")

        None where the launch recorded no PM samples: record with `ncu --section PmSampling`.
        """
        sampled = {
            name: samples
            for name, entry in catalog().series.items()
            if name in SOURCES and (samples := series(self._action, entry.metric)) is not None
        }
        return kernel_timeline(
            self.duration,
            sampled,
            schedulers=self.summary.gpu.chip.schedulers,
            counters=self.summary.values,
            several=self.summary.launch.workload == "range",
        )

    def instruction_count(self) -> int:
        """The number of instructions with counts; 0 where none were recorded."""
        from profkit.machine_code.blame import EXECUTED

        return counted(self._action, catalog().lines[EXECUTED].metric)

    def source_view(self, checklist: Checklist | None = None) -> SourceView:
        """Source lines and SASS with samples and counts of each.

        `checklist` are the report's findings to list at their locations.
        Raises BadInput where the launch has no per-instruction data.
        """
        from profkit.analysis.source_view import (
            blamed,
            line_quantities,
            responsible,
            source_view,
        )

        wanted = line_quantities(checklist)
        names = {name: entry.metric for name, entry in catalog().lines.items() if name in wanted}
        rows = instructions(self._action, names)
        if not rows:
            raise self._not_recorded("instructions_executed", catalog().lines)
        present = {name for name, metric in names.items() if self._action.metric_by_name(metric)}
        return source_view(
            rows,
            present,
            source_lines.source_files(self._action),
            blamed(checklist, self.summary.index),
            responsible(checklist, rows),
            self.summary.gpu.cc,
        )

    def code(self, view: SourceView) -> Code:
        """The place of the kernel's code in memory, of a view of it."""
        addresses = frozenset(row.address for row in view.instructions)
        start = source_lines.code_start(self._action, catalog().kernel_start, addresses)
        return Code(addresses, start)

    def recorded(self) -> Mapping[str, tuple[str, float | str | None]]:
        """Every metric of the launch by ncu's name: its unit and the value as recorded."""
        return every_metric(self._action)

    def _not_recorded(self, metric: str, entries: Mapping[str, Recorded]) -> BadInput:
        sections = {entry.section for name, entry in entries.items() if name in metric}
        add = f"record with `ncu --section {sections.pop()}`" if sections else ""
        return BadInput(f"{self._report.path}: launch {self.summary.index} has no {metric}", add)

    def _repr_html_(self) -> str:
        from profkit.analysis.report_view import kernel_cell

        return kernel_cell(self.summary)


class Report:
    """A report, read once. `kernels` is the table, `kernel(i)` one launch."""

    def __init__(self, raw: RawReport, check_half_from: float = 0.0) -> None:
        self._raw = raw
        self._check_half_from = check_half_from
        self._samples: dict[int, Sampled | str] = {}

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        kernel: str | None = None,
        nvtx: str | None = None,
        check_half_from: float = 0.0,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Read an Nsight Compute report (.ncu-rep or .ncu-repz), or the only one in a run's folder.

            >>> report = profkit.load("run.ncu-rep")
            >>> report.kernels[["kernel", "duration", "dram_busy"]]

        `kernel` keeps launches whose demangled name the regular expression is found in, `nvtx`
        those inside a range of that name (wildcards allowed). `check_half_from` is the share of
        the half-precision roof from which claimed work is checked (see `evaluate`). `progress`
        gets (launches read, launches).
        Raises BadInput for anything but a whole report, UsageError when no launch is selected or a
        folder holds several reports.
        """
        path = Path(path)
        if path.suffix == EXPORT and path.is_file():
            raise BadInput(
                f"{path}: an SQLite file, not an Nsight Compute report",
                "`profkit analyze` and profkit.load_timeline read a timeline",
            )
        raw = read(one_report(path), request(), progress)
        return cls(select_launches(raw, kernel, nvtx), check_half_from)

    @property
    def path(self) -> Path:
        return self._raw.path

    @property
    def session(self) -> Session:
        """How the report was recorded."""
        return self._raw.session

    @property
    def gpu(self) -> Gpu:
        """The GPU of the first launch."""
        return self.summary.launches[0].gpu

    @cached_property
    def summary(self) -> ReportSummary:
        return summarize(self._raw, evaluate(self._raw, check_half_from=self._check_half_from))

    @cached_property
    def kernels(self) -> pd.DataFrame:
        """One row a launch: `kernel`, `nvtx`, then every catalog quantity; NaN where missing."""
        require("Report.kernels", "pandas")
        import pandas as pd

        names, launches = list(catalog().quantities), self.summary.launches
        rows = [
            [item.name, "/".join(item.launch.nvtx), *(item.get(name) for name in names)]
            for item in launches
        ]
        index = pd.Index([item.index for item in launches], name="launch")
        return pd.DataFrame(rows, columns=["kernel", "nvtx", *names], index=index)

    @cached_property
    def missing(self) -> pd.DataFrame:
        """Why quantities are NaN: a row a launch, a column a quantity, "" where there is one."""
        require("Report.missing", "pandas")
        import pandas as pd

        names = list(catalog().quantities)
        rows = [[item.why_missing(name) for name in names] for item in self.summary.launches]
        return pd.DataFrame(rows, columns=names, index=self.kernels.index)

    def checklist(
        self,
        rules: Sequence[Rule] | None = None,
        disabled: Collection[str] = (),
        blamed: int | None = None,
        variants: Variants | None = None,
        timeline: Mapping[str, float] | None = None,
    ) -> Checklist:
        """The bottlenecks of the report's kernels with actions, ranked by estimated speedup.

            >>> for item in report.checklist().items:
            ...     print(item.speedup, item.range, item.title, item.kernel, item.actions)

        `rules` are the shipped ones unless given; `disabled` are names or categories to leave out.
        With `blamed` 0, instructions without a known line are not looked up.
        `variants` are those of the run that the report lies in, unless given, and so are the
        quantities of its `timeline`, which do not apply where only some of its launches are
        selected.
        """
        from profkit.rules.checklist import checklist, proofs
        from profkit.rules.rule_file import shipped_rules

        variants = variants or variants_of(self.path)
        if timeline is None:
            whole = len(self._raw.launches) == self.summary.recorded
            timeline = timeline_of(self.path) if whole else {}
        return checklist(
            self.summary,
            shipped_rules() if rules is None else rules,
            disabled=disabled,
            proofs=proofs(self.summary, variants),
            variants=variants.checked if variants else (),
            blame=partial(self._blame, located=blamed != 0),
            sampling=self._sampled,
            timeline=timeline,
        )

    def roofline(
        self,
        *,
        peaks: str = "held",
        measured: Mapping[str, float] | None = None,
        latency: str | Path | None = None,
        levels: Sequence[str] | None = None,
        precision: str | None = None,
        kernel: str | None = None,
    ) -> Roofline:
        """Kernels under their roofs: rate and intensity at each level of memory.

            >>> report.roofline().plot("roofline.svg")

        `peaks` is "held", "datasheet" or "measured" (then `measured` has B/s and FLOP/s by the
        names of roofs). Timed latencies are those of the run that the report lies in, or of
        `latency`, a file or run. `levels` are "dram", "l2", "l1"; `precision` is the one to show,
        "all" for each, unless given the one nearest to its roof. `kernel` keeps the kernels and
        variants in whose name the regular expression is found.
        Raises BadInput for a file without latencies, UsageError for a wrong name and for
        "measured" without `measured`.
        """
        from profkit.analysis.roofline_figure import Roofline
        from profkit.roofline.roofline import roofline
        from profkit.roofline.roofs import LEVELS, Peaks
        from profkit.timing.latency import analyze_latency
        from profkit.timing.latency_file import read_latencies

        if peaks == Peaks.measured and not measured:
            raise UsageError("no measured roofs", "pass measured=, or see `profkit ceilings`")
        saved = latencies_of(self.path) if latency is None else read_latencies(Path(latency))
        computed = roofline(
            self.summary,
            peaks=peaks,
            measured=measured,
            latencies=[analyze_latency(row) for row in saved.latencies] if saved else (),
            variants=variants_of(self.path),
            levels=levels or LEVELS,
            precision=precision,
            kernel=kernel,
        )
        return Roofline(**structs.asdict(computed))

    def explain(self, rule: Rule) -> tuple[Trial, ...]:
        """A rule evaluated on each kernel, most time first."""
        from profkit.rules.engine import explain

        return explain(self.summary, rule, self._sampled)

    def line_costs(self, launch: LaunchSummary) -> tuple[LineCost, ...]:
        """The lines of a launch by the seconds that their samples stand for, largest first.

        Nothing without samples or a source; what has no known line is left out.
        """
        action = self.kernel(launch.index)._action
        text = source_text(action)
        places = hottest(action, [catalog().lines["samples"].metric], sys.maxsize)
        return tuple(
            LineCost(place.file, place.line, text(place.file, place.line), seconds)
            for place in places
            if place.line and (seconds := place.share * launch.duration) > 0
        )

    def _blame(
        self, launch: LaunchSummary, names: Sequence[str], *, located: bool
    ) -> tuple[Place, ...]:
        from profkit.analysis.source_view import SAMPLED
        from profkit.machine_code.blame import AWAITED, COUNTED, EXECUTED, SAMPLES

        action, lines = self.kernel(launch.index)._action, catalog().lines
        places: tuple[Place, ...] = ()
        if names[0] in AWAITED and not isinstance(sampled := self._sampled(launch), str):
            places = sampled.causes(AWAITED[names[0]], _BLAMED)
        line_names = {name: SAMPLES + reason for name, reason in AWAITED.items()}
        line_names |= dict.fromkeys(COUNTED, EXECUTED)
        metrics = [lines[line_names.get(name, name)].metric for name in names]
        code = next((COUNTED[name] for name in names if name in COUNTED), None)
        places = places or hottest(action, metrics, _BLAMED, code)
        if not located or all(place.line for place in places[:_PLACES]):
            return places
        metrics = [lines[EXECUTED].metric, lines[SAMPLED].metric, *metrics]
        machine_code = source_lines.code_of(action, metrics, catalog().kernel_start)
        shown = source_lines.located(action, places[:_PLACES], machine_code)
        return *shown, *places[_PLACES:]

    def _sampled(self, launch: LaunchSummary) -> Sampled | str:
        """What the launch's samples by instruction say, or why they are not known."""
        if launch.index not in self._samples:
            self._samples[launch.index] = self._read_samples(launch)
        return self._samples[launch.index]

    def _read_samples(self, launch: LaunchSummary) -> Sampled | str:
        from profkit.machine_code.blame import EXECUTED, SAMPLES, Samples
        from profkit.machine_code.spare_work import SECTORS
        from profkit.report.action import WITHOUT_READER, has_reader
        from profkit.rules import samples

        shares = {group.typical.index: group.share for group in self.summary.groups}
        if not launch.get(samples.SAMPLED_FROM) > 0:
            return samples.NOT_SAMPLED
        if not shares.get(launch.index, 0.0) >= samples.WORTH_SAMPLING:
            return samples.SHORT_KERNEL
        wanted = {
            name: entry.metric
            for name, entry in catalog().lines.items()
            if name.startswith(SAMPLES) or name in {EXECUTED, SECTORS}
        }
        action = self.kernel(launch.index)._action
        if (count := counted(action, wanted[EXECUTED])) > samples.MOST_READ:
            return samples.LONG_CODE
        read = Samples(instructions(action, wanted))
        if count and read.has_code:
            return samples.Sampled(read, source_text(action))
        without = samples.NO_CODE if has_reader() else WITHOUT_READER
        return without if count else samples.NOT_SAMPLED

    def kernel(self, key: int | str) -> Kernel:
        """A launch: by its index in the report, or by its kernel.

            >>> report.kernel(2)
            >>> report.kernel("transpose_padded")
            >>> report.kernel("flash.*fwd")

        A string is the kernel's demangled name, its function's name or a regular expression to find
        in the demangled name. Of a kernel that was launched several times it is the launch of
        median duration. Raises UsageError where several kernels match, NothingMatches where none.
        """
        index = self._launch_of(key) if isinstance(key, str) else key
        for item, action in zip(self.summary.launches, self._raw.actions, strict=True):
            if item.index == index:
                return Kernel(self, item, action)
        known = [str(item.index) for item in self.summary.launches]
        raise NothingMatches(
            f"{self.path}: no launch {index}", f"its launches are {_listed(known)}"
        )

    def _launch_of(self, name: str) -> int:
        groups = self.summary.groups
        matches = [group for group in groups if name in {group.name, group.function}]
        if not matches:
            pattern = kernel_pattern(name)
            matches = [group for group in groups if pattern.search(group.name)]
        if len(matches) == 1:
            return matches[0].typical.index
        if matches:
            launches = [
                f"{group.typical.index} ({shorten(literal(group.function), NAME_WIDTH)}, "
                f"grid {extent(group.grid)}, block {extent(group.block)})"
                for group in matches
            ]
            raise UsageError(
                f"{self.path}: {name!r} matches {len(matches)} kernels",
                f"give the index of a launch: {_listed(launches)}",
            )
        functions = list(dict.fromkeys(literal(group.function) for group in groups))
        listed = _listed(shorten(function, NAME_WIDTH) for function in functions)
        remedy = did_you_mean(name, functions, f"its kernels are {listed}", alike=_ALIKE)
        raise NothingMatches(f"{self.path}: no kernel matches {name!r}", remedy)

    def __len__(self) -> int:
        return len(self._raw.launches)

    def __iter__(self) -> Iterator[Kernel]:
        return (self.kernel(item.index) for item in self.summary.launches)

    def __repr__(self) -> str:
        launches = "1 launch" if len(self) == 1 else f"{len(self)} launches"
        return f"<Report {self.path.name}: {launches} on {self.gpu.name}>"

    def _repr_html_(self) -> str:
        from profkit.analysis.report_view import report_cell

        return report_cell(self.summary, self._findings)

    @cached_property
    def _findings(self) -> Checklist:
        """The checklist without lines to blame, which take the longest."""
        return self.checklist(blamed=0)


load = Report.load


def select_launches(raw: RawReport, kernel: str | None, nvtx: str | None) -> RawReport:
    """Only the launches that `Report.load` would keep; raises as it does."""
    launches = raw.launches
    places = list(range(len(launches)))
    if kernel is not None:
        pattern = kernel_pattern(kernel)
        places = [place for place in places if pattern.search(launches[place].name)]
        if not places:
            names = dict.fromkeys(launch.function for launch in launches)
            raise UsageError(
                f"{raw.path}: no kernel matches {kernel!r}", f"its kernels are {_listed(names)}"
            )
    if nvtx is not None:
        name = nvtx.rstrip("/")
        places = [place for place in places if fnmatch.filter(launches[place].nvtx, name)]
        if not places:
            names = dict.fromkeys(range_name for launch in launches for range_name in launch.nvtx)
            remedy = f"its ranges are {_listed(names)}" if names else "record with `ncu --nvtx`"
            raise UsageError(f"{raw.path}: no launch is inside an NVTX range {nvtx!r}", remedy)
    if len(places) == len(launches):
        return raw
    return dataclasses.replace(
        raw,
        launches=tuple(launches[place] for place in places),
        columns={name: column[places] for name, column in raw.columns.items()},
        recorded={name: mask[places] for name, mask in raw.recorded.items()},
        actions=tuple(raw.actions[place] for place in places),
    )


def _recorded_name(metric: str, entries: Mapping[str, Recorded]) -> str:
    """ncu's name of a catalog entry; an ncu metric name is returned unchanged."""
    entry = entries.get(metric)
    if entry is None and "__" not in metric:
        _known(metric, entries)
    return entry.metric if entry else metric


def _listed(names: Iterable[str], most: int = 8) -> str:
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _known(name: str, names: Iterable[str]) -> None:
    known = list(names)
    if name not in known:
        raise UsageError(
            f"unknown quantity {name!r}", did_you_mean(name, known, "see `profkit metrics`", most=3)
        )
