"""A report that can also be written as a page."""

from profkit.analysis.report import Report as AnalyzedReport


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
