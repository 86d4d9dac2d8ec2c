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
    from profkit.rules.region_rules import RegionTrial
    from profkit.rules.rule_file import Action, Rule

_FLOORS_SHOWN = 5
_WORTH_TELLING = 0.005
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
    for label, told in _facts(rule):
        lines += [f"{label}:", "", *(f"- {_marked_up(label, one)}" for one in told), ""]
    lines.append(f"{rule.confidence.capitalize()} confidence, {rule.effort} effort.")
    return lines


def _marked_up(label: str, told: str) -> str:
    return code(told) if label in {_LOOKS_FOR, _LEAVES, _MATCHED} else escape(told)


def _facts(rule: Rule) -> Iterable[tuple[str, tuple[str, ...]]]:
    """What a rule is made of, each part with its label; empty parts left out."""
    leaves = [f"{name}: {share.text}" for name, share in rule.relieves.items()]
    leaves += [f"time: {rule.time.text}"] if rule.time else []
    parts = (
        (_LOOKS_FOR, tuple(condition.text for condition in rule.when)),
        (_MATCHED, tuple(map(_match, rule.match))),
        (_LEAVES, tuple(leaves)),
        ("Do", tuple(map(_action, rule.actions))),
        ("Check", rule.verify),
        ("Blames the lines with most", (" + ".join(rule.blame),) if rule.blame else ()),
    )
    return (part for part in parts if part[1])


def _match(match: Match) -> str:
    """A block of `match` in words: `stall long_scoreboard; producer LDG* or LD.*; in a loop`."""
    told = [
        f"{part} {' or '.join(patterns)}"
        for part in ("stall", "opcode", "producer", "line")
        if (patterns := getattr(match, part))
    ]
    return "; ".join([*told, "in a loop"] if match.in_loop else told)


def _action(action: Action) -> str:
    since, until = action.span
    if since <= OLDEST and until == NEWEST:
        return action.text
    low = f"{since[0]}.{since[1]}" if since > OLDEST else ""
    high = f"{until[0]}.{until[1]}" if until != NEWEST else ""
    if low == high:
        return f"{action.text} (CC {low})"
    span = f"{low} to {high}" if low and high else f"{low} and newer" if low else f"up to {high}"
    return f"{action.text} (CC {span})"


def explained(rule: Rule) -> RenderableType:
    """One rule: what it looks for, what it promises by which formulas, and what to do."""
    rows: list[tuple[str, str]] = []
    for label, told in _facts(rule):
        rows += [(label if at == 0 else "", one) for at, one in enumerate(told)]
    rows += [("Confidence", rule.confidence), ("Effort", rule.effort), ("Defined in", rule.place)]
    head = Text.assemble((rule.name, "bold"), (f"  {rule.category}", "dim"))
    return Group(head, Text(f"{rule.title}. {rule.explanation}"), Text(), rows_of(rows, 0))


def trials_view(
    trials: Sequence[Trial],
    found: Checklist,
    rule: Rule,
    beside: Sequence[Finding[KernelGroup]] = (),
) -> RenderableType:
    """What a rule makes of each kernel: those it fires on whole, of the others what kept it.

    `beside` are findings of other rules of its category: of all those on a kernel the checklist has
    the most cautious.
    """
    names = told_apart((words.kernel_name(trial.group) for trial in trials), _NAME)
    fired = [trial for trial in trials if trial.finding]
    parts: list[RenderableType] = []
    for trial in fired:
        alike = [one for one in beside if one.group.typical is trial.group.typical]
        name = names[words.kernel_name(trial.group)]
        parts += [Text(), *_fired(trial, name, found, rule, alike)]
    others = [
        (names[words.kernel_name(trial.group)], _kept_by(trial.conditions))
        for trial in trials
        if not trial.finding
    ]
    if others:
        parts += [Text(), Text("Does not fire on", "bold"), rows_of(others, _INDENT)]
    return Group(*parts)


def region_trial_view(trial: RegionTrial) -> RenderableType:
    """What a rule makes of a timeline: all that it looks for, and what that gives."""
    verb = "Fires on" if trial.finding else "Does not fire on"
    rows = [(_MARKS[one.holds], _looked_at(one)) for one in trial.conditions]
    if trial.finding and trial.finding.estimate:
        rows.append(("gives", words.gain(trial.finding.estimate)))
    return Group(Text(), Text(f"{verb} {words.TIMELINE}", "bold"), rows_of(rows, _INDENT))


def _fired(
    trial: Trial, name: str, found: Checklist, rule: Rule, beside: Sequence[Finding[KernelGroup]]
) -> list[RenderableType]:
    group, finding = trial.group, trial.finding
    assert finding is not None
    rank = next((item.rank for item in found.of(group) if item.rule.name == rule.name), 0)
    place = f"rank {rank}" if rank else "not ranked: no estimate, or its category's other less"
    head = Text.assemble(
        ("Fires on ", "bold"), (name, "bold"), f"  {number(group.median, 's')}, {place}"
    )
    rows = [(_MARKS[one.holds], _looked_at(one)) for one in trial.conditions]
    if finding.lacking:
        rows.append(("gives", f"not known without {', '.join(finding.lacking)}"))
    if estimate := finding.estimate or finding.negligible:
        rows.append(("gives", f"{words.gain(estimate)} {_by(rule)}"))
        rows += _floors(trial)
        if not math.isnan(trial.time):
            rows.append(("time", f"{percent(trial.time)} left by the rule's own formula"))
    for other in beside:
        promise = words.gain(other.estimate) if other.estimate else "promises no time"
        rows.append(("beside", f"{other.rule.name}: {promise} {_by(other.rule)}"))
    return [head, rows_of(rows, _INDENT)]


def _by(rule: Rule) -> str:
    return "by counters" if SAMPLED.keys().isdisjoint(rule.names) else "by samples"


def _looked_at(condition: Condition) -> str:
    return "; ".join(words.compared(one) for one in condition.compared) or condition.text


def _kept_by(conditions: Iterable[Condition]) -> str:
    """The first condition that does not hold, else the first that can't be told."""
    unmet = [one for one in conditions if not one.holds]
    first = next((one for one in unmet if one.holds is False), unmet[0])
    if first.holds is None:
        return f"not known: {', '.join(first.missing) or first.text}{_why_not(first.missing)}"
    missed = [words.missed(one) for one in first.compared if not one.holds]
    return "; ".join(missed) or f"not {first.text}"


def _why_not(missing: Iterable[str]) -> str:
    if SAMPLED.keys().isdisjoint(missing):
        return ""
    return f" (samples are looked at in kernels of {percent(WORTH_SAMPLING)} of the time: --kernel)"


def _floors(trial: Trial) -> list[tuple[str, str]]:
    """The highest floors before and after the fix, as times of the kernel."""
    duration = trial.group.typical.duration
    ordered = sorted(trial.now, key=lambda name: -max(trial.now[name], trial.after[name]))
    told = []
    for name in ordered[:_FLOORS_SHOWN]:
        if trial.now[name] > _WORTH_TELLING:
            ends = dict.fromkeys((trial.now[name], trial.after[name]))
            times = " to ".join(number(end * duration, "s") for end in ends)
            told.append(f"{RESOURCES[name]} {times}")
    return [("floors", "; ".join(told))] if told else []
