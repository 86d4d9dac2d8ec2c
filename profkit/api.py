"""What `import profkit` offers to read and compare reports."""

from __future__ import annotations

from profkit.analysis.report import Kernel
from profkit.analysis.report import Report as AnalyzedReport
from profkit.analysis.roofline_figure import Roofline
from profkit.application.timeline import Timeline
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.reports import diff
from profkit.rules.checklist import Checklist, Item

__all__ = [
    "Checklist", "Diff", "Item", "Kernel", "KernelDiff", "Report", "Roofline", "Timeline", "diff",
    "load", "load_timeline",
]  # fmt: skip


class Report(AnalyzedReport):
    """A report, read once. `kernels` is the table, `kernel(i)` one launch."""

    def page(self, *, with_host: bool = False) -> str:
        """The report page: one HTML document that needs no network.

            >>> Path("report.html").write_text(report.page())

        Computer name, paths and the whole command line are left out unless `with_host`.
        """
        from profkit.page.page import page_html

        return page_html(self, self.checklist(), with_host=with_host)


load = Report.load
load_timeline = Timeline.load
