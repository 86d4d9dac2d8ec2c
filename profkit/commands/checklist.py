"""`profkit checklist`: actions for a report's kernels, the most promising first."""

import shlex
from pathlib import Path

from profkit.commands import groups
from profkit.commands.kinds import Recording, Trial
from profkit.core.errors import UsageError


def checklist(
    path: Recording,
    *,
    top: groups.Number = 0,
    every: bool = False,
    kernel: str | None = None,
    nvtx: str | None = None,
    tried: Trial | None = None,
    output: groups.Output[groups.TextFormat],
    rules: groups.RuleOptions,
) -> None:
    """List actions for kernels or for a step, the most promising first.

    An item has its estimated speedup, evidence, location, actions, and how to verify the fix.

    Arguments:
      path (FILE): A report (.ncu-rep, .ncu-repz), a run, or a timeline (.sqlite,
        .nsys-rep, and of torch.profiler .json, .json.gz).

    Options:
      top (N): Only the first N items; 0: all.
      every (--all): Include items too small to act on, and kernels at the roof.
      nvtx (RANGE): Only launches inside this NVTX range, * and ? are wildcards; of a timeline the
        range that is a step.
      tried (FILE): What `profkit try -o FILE` gave (default: try.json beside the report): what is
        proven comes first.

    Examples:
      profkit checklist run.ncu-rep
      profkit checklist reports/sdpa_s512 --top 5 -o checklist.md
      profkit checklist run.sqlite --nvtx step
    """
    from profkit.analysis.run_files import TIMELINE, TIMELINES, beside
    from profkit.commands.reading import checklist_of, read_report, whole
    from profkit.report.names import file_name
    from profkit.rules.checklist_format import checklist_file
    from profkit.rules.checklist_view import checklist_document

    path, advice = whole(path), rules.advice(top or None)
    if path.name.endswith(TIMELINES):
        if kernel:
            raise UsageError("--kernel doesn't apply to a timeline", "leave it out")
        _of_timeline(path, nvtx, top, advice, output, tried, every=every)
        return
    report = read_report(path, kernel, nvtx)
    summary = report.summary
    items, trial = checklist_of(report, advice, tried)
    timeline = next((file for file in beside(Path(summary.path)) if file.name == TIMELINE), None)
    command = f"profkit analyze {shlex.quote(str(timeline))}" if timeline else ""
    name, complete = summary.path, output.format == "markdown"
    if complete:  # made to be shared: without the host's folders
        name = file_name(name, with_host=False)
        command = f"profkit analyze {timeline.name}, beside the report" if timeline else ""
    output.show(
        checklist_file(summary, items, top, timeline.name if timeline else None, trial.rows),
        lambda: checklist_document(
            summary, items, name, top, command, trial.blocks, whole=every, complete=complete
        ),
    )


def _of_timeline(
    path: Path,
    nvtx: str | None,
    top: int,
    advice: groups.Advice,
    output: groups.Output[groups.TextFormat],
    tried: Path | None,
    *,
    every: bool,
) -> None:
    """The checklist of the application in a timeline; as JSON all of the timeline's."""
    from profkit.application.timeline_view import findings_document, timelines_json
    from profkit.commands.reading import timeline_report
    from profkit.rules.checklist import WORTH_ACTING
    from profkit.ui.text import plural

    complete = timeline_report(path, advice, nvtx, tried)
    findings = complete.findings
    items = [item for item in findings if every or item.tried or item.range[1] >= 1 + WORTH_ACTING]
    report = complete._replace(findings=items[: top or None])
    if output.format == "json":
        output.put(timelines_json([report]))
        return
    left = len(findings) - len(report.findings)
    option = "--top 0" if len(report.findings) < len(items) else "--all"
    more = f"{plural(left, 'more finding')}; {option} lists them" if left else ""
    output.lay_out(findings_document(report, more, is_shared=output.format == "markdown"))
