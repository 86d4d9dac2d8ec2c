"""A timeline in Python: `profkit.load_timeline("x.sqlite")`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from profkit.analysis.run_files import one_timeline
from profkit.core.extras import require
from profkit.timeline.events import Events
from profkit.timeline.nesting import around
from profkit.timeline.reader import read
from profkit.timeline.summary import TimelineSummary, summarize_timeline
from profkit.timeline.times import NS
from profkit.ui.text import literal, number, percent, plural

if TYPE_CHECKING:
    import pandas as pd

    from profkit.rules.finding import Finding
    from profkit.rules.rule_file import Rule


class Timeline:
    """A timeline of Nsight Systems or torch.profiler.

    `summary` has its totals, `events` everything in it as columns.
    Times are in seconds from the first event, those of `events` in nanoseconds.
    """

    def __init__(self, events: Events) -> None:
        self.events = events

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `nsys export --type sqlite` or torch.profiler wrote, or a run's timeline.

            >>> timeline = profkit.load_timeline("run.sqlite")
            >>> timeline.summary.region.busy_share
            >>> timeline.findings()

        Raises BadInput for anything else, UsageError where a folder holds several.
        """
        return cls(read(one_timeline(Path(path))))

    @property
    def path(self) -> Path:
        return self.events.path

    @cached_property
    def summary(self) -> TimelineSummary:
        """How long the GPU worked and waited, and tables of kernels, ranges, calls and copies."""
        return summarize_timeline(self.events)

    @cached_property
    def kernels(self) -> pd.DataFrame:
        """One row a launch: `kernel`, `start` and `duration` (s), `device`, `stream`, `nvtx`."""
        require("Timeline.kernels", "pandas")
        import pandas as pd

        kernels, streams = self.events.kernels, self.events.streams
        nesting = around(self.events, kernels.call)
        columns = {
            "kernel": ([kernel.name for kernel in self.events.kernel_names], kernels.name),
            "start": (kernels.start / NS, None),
            "duration": ((kernels.end - kernels.start) / NS, None),
            "device": ([stream.device for stream in streams], kernels.stream),
            "stream": ([stream.number for stream in streams], kernels.stream),
            "nvtx": (["/".join(path) for path in nesting.paths], nesting.path),
        }
        return pd.DataFrame(
            {
                name: values if indices is None else pd.Series(values).take(indices).array
                for name, (values, indices) in columns.items()
            }
        )

    def findings(
        self, rules: Sequence[Rule] | None = None, disabled: Collection[str] = ()
    ) -> tuple[Finding, ...]:
        """What keeps the GPU from working, most time saved first: in a step in steady state, or in
        all of a program that repeats nothing.

        `rules` are the shipped ones unless given; `disabled` are names or categories to leave out.
        """
        from profkit.application import causes
        from profkit.rules.rule_file import shipped_rules

        known = shipped_rules() if rules is None else rules
        return causes.findings(self.events, known, disabled)

    def __len__(self) -> int:
        return len(self.events.kernels)

    def __repr__(self) -> str:
        region = self.summary.region
        busy = f"GPU busy {percent(region.busy_share)} of {number(region.span, 's')}"
        launches = plural(len(self), "kernel launch")
        return f"<Timeline {literal(self.path.name)}: {launches}, {busy}>"

    def _repr_html_(self) -> str:
        from profkit.application.timeline_view import Report, shared, timeline_document
        from profkit.ui.html import document_cell

        report = shared(Report(self.summary, self.findings()), with_host=False)
        return document_cell(timeline_document(report).blocks)
