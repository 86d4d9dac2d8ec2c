"""`profkit rules`: see the rules, understand one, check your own, measure them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from profkit.commands.formats import TextFormat
from profkit.commands.options import (
    FORMAT,
    DisableOption,
    KernelOption,
    OutputOption,
    Reading,
    RulesOption,
    put,
    put_view,
    report_failures,
)
from profkit.core.errors import BadInput, UsageError
from profkit.core.suggestion import did_you_mean

if TYPE_CHECKING:
    from profkit.rules.rule_file import Rule

_RECORDED = "reports/*/pairs"

rules = typer.Typer(
    name="rules",
    help="See the rules that findings come from, understand one, check and measure them.",
    no_args_is_help=True,
)


@rules.command(name="list", cls=Reading)
def list_rules(
    format: Annotated[Literal["terminal", "markdown"], FORMAT] = "terminal",
    output: OutputOption = None,
    own: RulesOption = None,
) -> None:
    """List the rules.

    Examples:

      profkit rules list

      profkit rules list --rules my_rules/
    """
    from profkit.rules.rules_view import list_view, rules_markdown

    found = _all(own)
    if format == "markdown":
        put(rules_markdown(found), output)
    else:
        put_view(list_view(found), output)


@rules.command(cls=Reading)
def explain(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="Its name.")],
    on: Annotated[
        Path | None,
        typer.Option(
            "--on", metavar="FILE", help="A report, a run or a timeline: what the rule makes of it."
        ),
    ] = None,
    kernel: KernelOption = None,
    own: RulesOption = None,
) -> None:
    """Say what a rule looks for and promises, and why it fires on a report's kernels or not.

    Examples:

      profkit rules explain shared_bank_conflicts

      profkit rules explain shared_bank_conflicts --on run.ncu-rep --kernel transpose
    """
    from rich.console import Group

    from profkit.rules.rules_view import explained, timeline_trial_view, trials_view

    if kernel and on is None:
        raise UsageError("--kernel needs a report", "add --on FILE")
    found = _all(own)
    chosen = _named(rule, found)
    view = explained(chosen)
    if on is not None and chosen.about == "timeline":
        from profkit.rules.engine import explain_timeline

        view = Group(view, timeline_trial_view(explain_timeline(_quantities(on), chosen)))
    elif on is not None:
        from profkit.commands.reading import read_report

        report = read_report(on, kernel)
        listed = report.checklist(found, blamed=0)
        alike = [rule for rule in found if rule.category == chosen.category and rule != chosen]
        beside = [trial.finding for rule in alike for trial in report.explain(rule)]
        trials = trials_view(report.explain(chosen), listed, list(filter(None, beside)))
        view = Group(view, trials)
    put_view(view, None)


@rules.command(cls=Reading)
def check(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A rules file, or a folder of them.")
    ],
) -> None:
    """Check rules of your own; says everything that is wrong, with file and line.

    Examples:

      profkit rules check my_rules/
    """
    from profkit.rules.rule_file import check_rules
    from profkit.ui.text import plural

    found, faults = check_rules(path)
    for fault in faults:
        typer.echo(str(fault))
    if faults:
        count = f"{path}: {plural(len(faults), 'fault')}"
        raise BadInput(count, "docs/writing-rules.md tells how to write a rule")
    typer.echo(f"{plural(len(found), 'rule')}, no fault")


@rules.command(cls=Reading)
def score(
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            metavar="DIR",
            help=f"Recorded pairs, in folders of their own. [default: {_RECORDED}]",
        ),
    ] = None,
    format: Annotated[TextFormat, FORMAT] = "terminal",
    output: OutputOption = None,
    own: RulesOption = None,
    disable: DisableOption = None,
) -> None:
    """Measure the findings on pairs: a kernel with a known defect, and the same one mended.

    A pair is a folder with pair.yaml (`category:` of the defect, null for a kernel without one),
    before.ncu-rep, after.ncu-rep, and latency.json: what `profkit time` wrote for before and after,
    or {"before": ..., "after": ...} in one unit, each a number, a list or a mapping with a median.
    Without it the durations in the reports are compared.

    Examples:

      profkit rules score

      profkit rules score --pairs my_pairs/ --format json -o score.json
    """
    from profkit.commands.advice import chosen
    from profkit.commands.reading import judge_pairs
    from profkit.core.typed_file import encode
    from profkit.rules.rules_view import score_markdown, score_view
    from profkit.rules.score import score as summed

    advice = chosen(own, disable or (), blamed=0)
    judged, notes, failures = judge_pairs(_folders(pairs), advice)
    if judged:
        found = summed(judged, notes.why)
        if format == "json":
            put(encode(found, dense=False), output)
        elif format == "markdown":
            put(score_markdown(found, notes.note), output)
        else:
            put_view(score_view(found), output)
    report_failures(failures)


def _quantities(path: Path) -> Mapping[str, float]:
    """What rules may name of a timeline, or of that of a run; raises BadInput without one."""
    from profkit.analysis.run_files import TIMELINES, one_report, timeline_of
    from profkit.commands.reading import read_timeline
    from profkit.timeline.summary import summarize_timeline

    if path.suffix in TIMELINES:
        found = summarize_timeline(read_timeline(path)).quantities
    else:
        found = timeline_of(one_report(path))
    if not found:
        raise BadInput(f"{path}: no GPU work on a timeline", "name a run, or a timeline (.sqlite)")
    return found


def _folders(pairs: Path | None) -> list[Path]:
    if pairs is not None:
        return [pairs]
    found = sorted(Path().glob(_RECORDED))
    if not found:
        raise UsageError(f"no {_RECORDED} here", "name a folder of recorded pairs: --pairs DIR")
    return found


def _all(own: Path | None) -> tuple[Rule, ...]:
    from profkit.rules.rule_file import shipped_rules, with_own

    return with_own(own) if own else shipped_rules()


def _named(name: str, found: tuple[Rule, ...]) -> Rule:
    by_name = {rule.name: rule for rule in found}
    if name not in by_name:
        meant = did_you_mean(name, by_name, "see `profkit rules list`", most=3)
        raise UsageError(f"no rule {name!r}", meant)
    return by_name[name]
