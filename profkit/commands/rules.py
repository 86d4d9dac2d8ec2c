"""`profkit rules`: list, explain, check and score rules."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import typer

from profkit.commands.groups import Output, OwnRules, RuleOptions, TextFormat
from profkit.commands.kinds import Recording, RulesFile, kind_of
from profkit.commands.options import Reading, put, report_failures
from profkit.core.errors import BadInput, UsageError
from profkit.core.suggestion import did_you_mean

_RECORDED = "reports/*/pairs"
_APPLICATIONS = "reports/*/apps"

rules = typer.Typer(
    name="rules",
    help="List, explain, check and score the rules behind findings.",
    no_args_is_help=True,
)


@rules.command("list", cls=Reading)
def list_rules(output: Output[Literal["terminal", "markdown"]], *, own: OwnRules) -> None:
    """List the rules.

    --format markdown writes their explanations too.

    Examples:
      profkit rules list
      profkit rules list --rules my_rules/
    """
    from profkit.rules.rules_view import list_document, page_document

    document = page_document if output.format == "markdown" else list_document
    output.lay_out(document(own.rules()))


@rules.command("explain", cls=Reading)
def explain(
    rule: str, on: Recording | None = None, kernel: str | None = None, *, own: OwnRules
) -> None:
    """Explain a rule, and why it fires on a report's kernels or not.

    With --on, its conditions are evaluated on every kernel.

    Arguments:
      rule (RULE): Name of the rule.

    Options:
      on (FILE): Evaluate the rule on this report, run or timeline.

    Examples:
      profkit rules explain shared_bank_conflicts
      profkit rules explain shared_bank_conflicts --on run.ncu-rep
    """
    from profkit.rules.rules_view import explained, timeline_trial_blocks, trials_blocks
    from profkit.ui.document import Document

    if kernel and on is None:
        raise UsageError("--kernel needs a report", "add --on FILE")
    by_name = {known.name: known for known in own.rules()}
    if rule not in by_name:
        remedy = did_you_mean(rule, by_name, "see `profkit rules list`", most=3)
        raise UsageError(f"no rule {rule!r}", remedy)
    chosen = by_name[rule]
    blocks = list(explained(chosen))
    if on is not None and chosen.about != "kernel":
        from profkit.rules.engine import explain_timeline

        measured = _quantities(on) if chosen.about == "timeline" else _step_quantities(on)
        blocks += timeline_trial_blocks(explain_timeline(measured, chosen))
    elif on is not None:
        from profkit.commands.reading import read_report

        if kind_of(on) == "timeline":
            message = f"{on}: a timeline, and {rule} is about kernels"
            raise BadInput(message, "name a report or a run")
        report = read_report(on, kernel)
        listed = report.checklist(tuple(by_name.values()), blamed=0)
        others = [
            trial.finding
            for other in by_name.values()
            if other.category == chosen.category and other != chosen
            for trial in report.explain(other)
            if trial.finding
        ]
        blocks += trials_blocks(report.explain(chosen), listed, others)
    Output("terminal").lay_out(Document(rule, tuple(blocks)))


@rules.command("check", cls=Reading)
def check(path: RulesFile) -> None:
    """Validate your own rules; print every error with file and line.

    Exits with 5 if there are errors.

    Arguments:
      path (PATH): A rules file, or a folder of them.

    Examples:
      profkit rules check my_rules/
    """
    from profkit.rules.rule_file import check_rules
    from profkit.ui.text import plural

    valid, faults = check_rules(path)
    for fault in faults:
        put(f"{fault}\n", None)
    if faults:
        count = f"{path}: {plural(len(faults), 'error')}"
        raise BadInput(count, "see docs/guides/writing-rules.md")
    put(f"{plural(len(valid), 'rule')}, no errors\n", None)


@rules.command("score", cls=Reading)
def score(sets: tuple[Path, ...] = (), *, output: Output[TextFormat], rules: RuleOptions) -> None:
    """Score the findings on sets of pairs of kernels, with a known defect and fixed.

    A pair is a folder with pair.yaml (`category:` of the defect, null for a kernel without one),
    before.ncu-rep, after.ncu-rep, and latency.json: saved by `profkit time` for before and after,
    or {"before": ..., "after": ...} in one unit, each a number, a list or a mapping with a median.
    Without it the durations in the reports are compared. `source:` in pair.yaml names who published
    a pair: a set is judged without recorded fixes of its sources. `also:` lists other
    categories that are right. A folder with times.json and timelines of
    an application before and after a fix is scored by the causes that are named and their ranges,
    one with label.yaml, measured.json and a timeline by its first two causes and its changes.

    Options:
      sets (--sets, --pairs DIR): Folder of recorded pairs; repeat it for several sets, named by
        their folders (default: reports/*/pairs).

    Examples:
      profkit rules score
      profkit rules score --pairs my_pairs/ -o score.json
      profkit rules score --sets reports/h200/pairs --sets published/
    """
    from profkit.commands.reading import judge_applications, judge_pairs
    from profkit.score.score import score as summed
    from profkit.score.view import score_document

    advice = rules.advice(0)
    folders = sets or sorted(Path().glob(_RECORDED))
    if not folders:
        raise UsageError(f"no {_RECORDED} here", "name a folder of recorded pairs: --pairs DIR")
    applications = sets or sorted(Path().glob(_APPLICATIONS))
    known, broken = judge_applications(applications, advice)
    judged, failures = judge_pairs(folders, advice, optional=bool(known or broken))
    failures += broken
    if judged or known:
        result = summed(judged, known)
        complete = output.format == "markdown"
        output.show(result, lambda: score_document(result, complete=complete))
    report_failures(failures)


def _quantities(path: Path) -> Mapping[str, float]:
    """What rules may name of a timeline, or of that of a run; raises BadInput without one."""
    from profkit.analysis.run_files import TIMELINES, one_report, timeline_of
    from profkit.commands.reading import read_timeline
    from profkit.timeline.region import measure

    if path.name.endswith(TIMELINES):
        quantities = measure(read_timeline(path))
    else:
        quantities = timeline_of(one_report(path))
    if not quantities:
        raise BadInput(f"{path}: no GPU work on a timeline", "name a run, or a timeline (.sqlite)")
    return quantities


def _step_quantities(path: Path) -> Mapping[str, float]:
    """What rules may name of an application's step; raises BadInput where nothing repeats."""
    from profkit.application.causes import quantities
    from profkit.application.steps import steady_steps
    from profkit.commands.reading import read_timeline

    events = read_timeline(path)
    if measured := quantities(events, steady_steps(events)):
        return measured
    raise BadInput(f"{path}: no steps on this timeline", "record more steps of the program")
