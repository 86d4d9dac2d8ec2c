"""What `import profkit` offers to read and compare reports, and to measure callables."""

from profkit.analysis.report import Kernel
from profkit.analysis.roofline_figure import Roofline
from profkit.application.timeline import Timeline
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.reports import diff
from profkit.page.report import Report, load
from profkit.rules.checklist import Checklist
from profkit.rules.finding import Finding

__all__ = [
    "Checklist", "Diff", "Finding", "Item", "Kernel", "KernelDiff", "Report", "Roofline",
    "Timeline", "diff", "load", "load_timeline",
]  # fmt: skip

Item = Finding  # a checklist's items, by their first name
load_timeline = Timeline.load
