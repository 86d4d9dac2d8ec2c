"""`profkit checklist`: actions for a report's kernels, largest estimated speedup first."""

from __future__ import annotations

import shlex
from pathlib import Path

from profkit.commands.choices import TextFormat
from profkit.commands.options import put, width_of


def checklist(
    path: Path,
    top: int = 0,
    every: bool = False,
    kernel: str | None = None,
    nvtx: str | None = None,
    format: TextFormat = "terminal",
    output: Path | None = None,
    rules: Path | None = None,
    disable: list[str] | None = None,
) -> None:
    """List actions for kernels, largest estimated speedup first.

    An item has its estimated speedup, evidence, location, actions, and how to verify the fix.

    Examples:
      profkit checklist run.ncu-rep
      profkit checklist reports/sdpa_s512 --top 5 -o checklist.md
    """
    from profkit.analysis.run_files import TIMELINE, beside
    from profkit.commands.reading import chosen_advice, read_report
    from profkit.rules.checklist_format import checklist_json
    from profkit.rules.checklist_view import checklist_view
    from profkit.rules.finding_text import checklist_markdown

    advice = chosen_advice(rules, disable, top or None)
    report = read_report(path, kernel, nvtx)
    items = report.checklist(*advice)
    timelines = [file for file in beside(Path(report.summary.path)) if file.name == TIMELINE]
    if format == "json":
        name = next((file.name for file in timelines), None)
        put(checklist_json(report.summary, items, top, name), output)
    elif format == "markdown":
        put(checklist_markdown(report.summary, items, top, whole=every), output)
    else:
        command = next((f"profkit analyze {shlex.quote(str(file))}" for file in timelines), "")
        width = width_of(output)
        view = checklist_view(report.summary, items, top, width, command, whole=every)
        put(view, output)
