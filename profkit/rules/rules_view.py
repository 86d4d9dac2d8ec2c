"""Rules as people read them: the list, one explained, and what one makes of a report's kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.core.text_files import shipped_text
from profkit.report.catalog import NEWEST, OLDEST
from profkit.report.names import told_apart
from profkit.report.resources import RESOURCES
from profkit.report.summary import Group as KernelGroup
from profkit.rules import finding_text as words
from profkit.rules.samples import SAMPLED, WORTH_SAMPLING, Match
from profkit.ui.markdown import code, escape
from profkit.ui.terminal import rows_of
from profkit.ui.text import number, percent, plural

if TYPE_CHECKING:
    from profkit.rules.checklist import Checklist
    from profkit.rules.engine import Condition, Finding, Trial
    from profkit.rules.rule_file import Action, Rule

_FLOORS_SHOWN = 5
_LEAST_FLOOR = 0.005
_MARKS: Mapping[bool | None, str] = {True: "yes", False: "no", None: "?"}
_LOOKS_FOR, _LEAVES = "Looks for", "A fix leaves"
_MATCHED = "Matched samples"
_INDENT = 4
_NAME = 40


def list_view(rules: Sequence[Rule]) -> RenderableType:
    """All rules, a line or two each."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("Rule", "Category"):
        table.add_column(name, no_wrap=True)
    table.add_column("What it finds", overflow="fold")
    for rule in rules:
        table.add_row(rule.name, rule.category, Text(rule.title))
    more = f"{plural(len(rules), 'rule')}; profkit rules explain RULE tells more"
    return Group(table, Text(), Text(more, "dim"))


def rules_markdown(rules: Sequence[Rule]) -> str:
    """The page of the rules, by category."""
    lines = [shipped_text("profkit.rules", "rules.md")]
    for category in dict.fromkeys(rule.category for rule in rules):
        lines.append(f"## {category}\n")
        for rule in rules:
            if rule.category == category:
                lines += [*_section(rule), ""]
    return "\n".join(lines)


def _section(rule: Rule) -> list[str]:
    lines = [f"### {rule.name}", "", f"{escape(rule.title)}. {escape(rule.explanation)}", ""]
    for label, entries in _facts(rule).items():
        shown = code if label in {_LOOKS_FOR, _LEAVES, _MATCHED} else escape
        lines += [f"{label}:", "", *(f"- {shown(entry)}" for entry in entries), ""]
    lines.append(f"{rule.confidence.capitalize()} confidence, {rule.effort} effort.")
    return lines


def _facts(rule: Rule) -> Mapping[str, Sequence[str]]:
    """What a rule is made of, each part by its label; empty parts left out."""
    leaves = [f"{name}: {share.text}" for name, share in rule.relieves.items()]
    parts: Mapping[str, Sequence[str]] = {
        _LOOKS_FOR: [condition.text for condition in rule.when],
        _MATCHED: list(map(_match, rule.match)),
        _LEAVES: [*leaves, f"time: {rule.time.text}"] if rule.time else leaves,
        "Do": list(map(_action, rule.actions)),
        "Check": rule.verify,
        "Blames the lines with most": [" + ".join(rule.blame)] if rule.blame else (),
    }
    return {label: entries for label, entries in parts.items() if entries}


def _match(match: Match) -> str:
    """A block of `match` in words: `stall long_scoreboard; producer LDG* or LD.*; in a loop`."""
    parts = ("stall", "opcode", "producer", "line")
    words = [
        f"{part} {' or '.join(getattr(match, part))}" for part in parts if getattr(match, part)
    ]
    return "; ".join([*words, "in a loop"] if match.in_loop else words)


def _action(action: Action) -> str:
    since, until = action.span
    low = f"{since[0]}.{since[1]}" if since > OLDEST else ""
    high = f"{until[0]}.{until[1]}" if until != NEWEST else ""
    if low == high:
        return f"{action.text} (CC {low})" if low else action.text
    span = f"{low} to {high}" if low and high else f"{low} and newer" if low else f"up to {high}"
    return f"{action.text} (CC {span})"


def explained(rule: Rule) -> RenderableType:
    """One rule: what it looks for, what it promises by which formulas, and what to do."""
    rows = [(label, "\n".join(entries)) for label, entries in _facts(rule).items()]
    rows += [("Confidence", rule.confidence), ("Effort", rule.effort), ("Defined in", rule.place)]
    head = Text.assemble((rule.name, "bold"), (f"  {rule.category}", "dim"))
    return Group(head, Text(f"{rule.title}. {rule.explanation}"), Text(), rows_of(rows, 0))


def trials_view(
    trials: Sequence[Trial[KernelGroup]],
    checklist: Checklist,
    others: Sequence[Finding[KernelGroup]],
) -> RenderableType:
    """What a rule makes of each kernel: those it fires on whole, of the others what kept it.

    `others` are findings of other rules of the category: of all those on a kernel the checklist has
    the most cautious.
    """
    names = told_apart((words.kernel_name(trial.group) for trial in trials), _NAME)
    parts: list[RenderableType] = []
    without: list[tuple[str, str]] = []
    for trial in trials:
        name = names[words.kernel_name(trial.group)]
        if trial.finding is None:
            without.append((name, _obstacle(trial.conditions)))
            continue
        own = [other for other in others if other.group.typical is trial.group.typical]
        parts += [Text(), *_fired(trial, trial.finding, name, checklist, own)]
    if without:
        parts += [Text(), Text("Does not fire on", "bold"), rows_of(without, _INDENT)]
    return Group(*parts)


def timeline_trial_view(trial: Trial[None]) -> RenderableType:
    """What a rule makes of a timeline: all that it looks for, and what that gives."""
    verb = "Fires on" if trial.finding else "Does not fire on"
    rows = _looked_at(trial.conditions)
    if trial.finding and trial.finding.estimate:
        rows.append(("gives", words.gain(trial.finding.estimate)))
    return Group(Text(), Text(f"{verb} {words.TIMELINE}", "bold"), rows_of(rows, _INDENT))


def _fired(
    trial: Trial[KernelGroup],
    finding: Finding[KernelGroup],
    name: str,
    checklist: Checklist,
    others: Sequence[Finding[KernelGroup]],
) -> list[RenderableType]:
    group, rule = trial.group, finding.rule
    items = checklist.findings_on(group)
    rank = next((item.rank for item in items if item.rank and item.rule.name == rule.name), 0)
    place = f"rank {rank}" if rank else "not ranked: no estimate, or its category's other less"
    time = f"  {number(group.median, 's')}, {place}"
    rows = _looked_at(trial.conditions)
    if finding.lacking:
        rows.append(("gives", f"not known without {', '.join(finding.lacking)}"))
    if estimate := finding.estimate or finding.negligible:
        rows.append(("gives", f"{words.gain(estimate)} {_source(rule)}"))
        rows.append(("floors", _floors(trial)))
        if not math.isnan(trial.time):
            rows.append(("time", f"{percent(trial.time)} left by the rule's own formula"))
    for other in others:
        promise = words.gain(other.estimate) if other.estimate else "promises no time"
        rows.append(("beside", f"{other.rule.name}: {promise} {_source(other.rule)}"))
    head = Text.assemble(("Fires on ", "bold"), (name, "bold"), time)
    return [head, rows_of(rows, _INDENT)]


def _source(rule: Rule) -> str:
    return "by counters" if SAMPLED.keys().isdisjoint(rule.names) else "by samples"


def _looked_at(conditions: Iterable[Condition]) -> list[tuple[str, str]]:
    return [
        (_MARKS[each.holds], "; ".join(map(words.compared, each.compared)) or each.text)
        for each in conditions
    ]


def _obstacle(conditions: Iterable[Condition]) -> str:
    """The first condition that does not hold, else the first that is unknown."""
    unmet = [condition for condition in conditions if not condition.holds]
    first = next((condition for condition in unmet if condition.holds is False), unmet[0])
    if first.holds is None:
        text = f"not known: {', '.join(first.missing) or first.text}"
        if SAMPLED.keys().isdisjoint(first.missing):
            return text
        share = percent(WORTH_SAMPLING)
        return f"{text} (samples are looked at in kernels of {share} of the time: --kernel)"
    missed = [words.missed(value) for value in first.compared if not value.holds]
    return "; ".join(missed) or f"not {first.text}"


def _floors(trial: Trial[KernelGroup]) -> str:
    """The highest floors before and after the fix, as times of the kernel."""
    now, after, duration = trial.now, trial.after, trial.group.typical.duration
    ordered = sorted(now, key=lambda name: -max(now[name], after[name]))
    return "; ".join(
        f"{RESOURCES[name]} "
        + " to ".join(
            number(end * duration, "s") for end in dict.fromkeys((now[name], after[name]))
        )
        for name in ordered[:_FLOORS_SHOWN]
        if now[name] > _LEAST_FLOOR
    )
