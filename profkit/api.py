"""What `import profkit` offers to read and compare reports."""

from __future__ import annotations

from profkit.analysis.report import Kernel
from profkit.analysis.report import Report as AnalyzedReport
from profkit.comparison.reports import diff

__all__ = ["Kernel", "Report", "diff", "load"]


class Report(AnalyzedReport):
    """A report, read once. `kernels` is the table, `kernel(i)` one launch."""

    def page(self, *, with_host: bool = False) -> str:
        """The report page: one HTML document that needs no network.

        Computer name, paths and the whole command line are left out unless `with_host`.
        """
        from profkit.page.page import page_html

        return page_html(self, self.checklist(), with_host=with_host)


load = Report.load
