"""The documents of `profkit rules`: list, explanation, evaluation on a report, accuracy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from profkit.core.compute_capability import NEWEST, OLDEST
from profkit.core.grouping import grouped
from profkit.core.text_files import shipped_text
from profkit.report.floors import REACH, WORTH
from profkit.report.resources import RESOURCES
from profkit.rules import finding_text as words
from profkit.rules.rule_file import Action, Rule
from profkit.rules.samples import SAMPLED, Match
from profkit.ui.document import (
    Block,
    Document,
    Facts,
    Fold,
    Heading,
    Paragraph,
    Row,
    Styled,
    Table,
    authored,
    code,
    styled,
)
from profkit.ui.names import told_apart
from profkit.ui.text import factor, number, percent, plural

if TYPE_CHECKING:
    from profkit.rules.checklist import Checklist
    from profkit.rules.engine import Condition, Trial
    from profkit.rules.finding import Estimate, Finding

_FLOORS_SHOWN = 5  # chosen: two lines at 100 columns
_LEAST_FLOOR = 0.005  # share of the kernel's time that is not rounded to 0%
_IS_UNKNOWN = re.compile(r"known\((\w+)\) == ([01])")
_ESTIMATE = "est. speedup"
_MARKS: Mapping[bool | None, str] = {True: "yes", False: "no", None: "?"}
_BY_WIDTH = "by the width of an estimate's range"
_NAME = 40  # characters of a kernel name, chosen: time and rank fit beside it at 80 columns


def list_document(rules: Sequence[Rule]) -> Document:
    """All rules, a line or two each."""
    rows = tuple((rule.name, rule.category, rule.title) for rule in rules)
    more = f"{plural(len(rules), 'rule')}; details: profkit rules explain RULE"
    columns = ("Rule", "Category", "Finding")
    return Document("Rules", (Table("", columns, rows, more, dispensable=("Category",)),))


def page_document(rules: Sequence[Rule]) -> Document:
    """The page of the rules, by category."""
    blocks = list(authored(shipped_text("profkit.rules", "rules.md")))
    categories = list(dict.fromkeys(rule.category for rule in rules))
    for rule in sorted(rules, key=lambda rule: categories.index(rule.category)):
        text, facts = _explanation(rule, [Row("Category", rule.category), *_facts(rule, "")])
        blocks += [Heading(rule.name), text, Fold("Conditions, actions, verification", (facts,))]
    return Document("Rules", tuple(blocks))


def explained(rule: Rule) -> Iterator[Block]:
    """One rule: conditions, formulas of its estimate, actions and verification."""
    yield Heading(rule.name, 1, f"category {rule.category}")
    yield from _explanation(rule, [*_facts(rule, _BY_WIDTH), Row("Defined in", rule.place)])


def _explanation(rule: Rule, rows: Iterable[Row]) -> Iterator[Block]:
    yield Paragraph(f"{rule.title}. {rule.explanation}")
    yield Facts("", tuple(row for row in rows if row.value), gap=True)


def _facts(rule: Rule, by_width: str) -> Iterator[Row]:
    """The parts of a rule by label; `by_width` is the confidence of one with formulas."""
    shares = {**rule.relieves, "FLOP": rule.flop, "time": rule.time}
    names = grouped((share.text if share else "", name) for name, share in shares.items())
    left = [f"{', '.join(own)}: {text}" for text, own in names.items() if text]
    yield Row("Conditions", _lines([condition.text for condition in rule.when], code))
    yield Row("Selected samples", _lines(map(_match, rule.match), code))
    yield Row("Remaining after a fix", _lines(left, code))
    yield Row("Range ends at", code(rule.bound.text) if rule.bound else "")
    yield Row("Assumes", rule.assumes)
    yield Row("Actions", _lines(map(_action, rule.actions)))
    yield Row("Verify", _lines(rule.verify))
    yield Row("Locations ranked by", " + ".join(rule.blame))
    yield Row("Confidence", by_width if rule.formulas else rule.confidence)
    yield Row("Effort", rule.effort)


def _lines(texts: Iterable[str], style: Callable[[str], str] = str) -> Styled:
    """Texts as lines."""
    parts = [part for text in texts for part in ("\n", style(text))]
    return styled(*parts[1:])


def _match(match: Match) -> str:
    """A block of `match` as text: `stall long_scoreboard; producer LDG* or LD.*; in a loop`."""
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


def trials_blocks(
    trials: Sequence[Trial], checklist: Checklist, others: Sequence[Finding]
) -> Iterator[Block]:
    """A rule on each kernel: in full where it fires, else the condition that does not hold.

    `others` are findings of other rules of the category: of all those on a kernel the checklist has
    the one with the largest estimate.
    """
    names = told_apart((words.kernel_name(trial.group) for trial in trials), _NAME)
    without: list[Row] = []
    for trial in trials:
        name = names[words.kernel_name(trial.group)]
        if finding := trial.finding:
            own = [other for other in others if other.launch == finding.launch]
            fires = "Fires on " if finding.estimate or not finding.lacking else "Open on "
            yield Heading(styled(fires, name), 3, _place(trial, finding, checklist))
            rows = _fired(trial, finding, checklist, own)
            yield Facts("", tuple(row for row in rows if row.value), indent=4)
        else:
            without.append(Row(name, _obstacle(trial.conditions)))
    if without:
        yield Heading("Does not fire on", 3)
        yield Facts("", tuple(without), indent=4)


def timeline_trial_blocks(trial: Trial) -> Iterator[Block]:
    """A rule on a timeline: its conditions and its estimate."""
    yield Heading(f"{'Fires' if trial.finding else 'Does not fire'} on {words.TIMELINE}", 3)
    rows = list(_looked_at(trial.conditions))
    if trial.finding and trial.finding.estimate and not trial.finding.is_negligible:
        rows.append(Row(_ESTIMATE, str(trial.finding.estimate)))
    yield Facts("", tuple(rows), indent=4)


def _place(trial: Trial, finding: Finding, checklist: Checklist) -> str:
    """The kernel's time, and the finding's rank or why it has none."""
    items = checklist.findings_on(trial.group)
    own = (item.rank for item in items if item.rank and item.rule.name == finding.rule.name)
    if finding.rule.first:
        return f"{number(trial.group.median, 's')}, comes first" if trial.group else "comes first"
    smaller = f"saves less than {1 - 1 / WORTH:.0%} of the kernel"
    absent = (
        smaller if finding.is_negligible else "no estimate, or it is in another of its category"
    )
    rank = next(own, 0)
    place = f"rank {rank}" if rank else f"not ranked: {absent}"
    return f"{number(trial.group.median, 's')}, {place}" if trial.group else place


def _fired(
    trial: Trial, finding: Finding, checklist: Checklist, others: Sequence[Finding]
) -> Iterator[Row]:
    yield from _looked_at(trial.conditions)
    if finding.lacking:
        yield Row("not recorded", ", ".join(finding.lacking))
        yield Row("bound", words.allowed(finding))
    if estimate := finding.estimate:
        yield Row(_ESTIMATE, _gain(finding, estimate, checklist))
        yield Row("assumes", finding.rule.assumes)
        yield Row("headroom", words.headroom(checklist.headroom_of(trial.group)))
        yield Row("lower bounds", _floors(trial))
        yield Row("stalls", _stalls(trial))
        if trial.stalls and not finding.lacking:
            less = "; the lower bounds leave less, which the estimate follows"
            less = less if trial.waited * estimate.likely > WORTH else ", before the lower bounds"
            yield Row("time", f"{percent(trial.waited)} remains by the stalls alone{less}")
        if not math.isnan(trial.time):
            remains = "remains by the rule's formula, before the lower bounds"
            yield Row("time", f"{percent(trial.time)} {remains}")
    for other in others:
        estimate = None if other.is_negligible else other.estimate
        yield Row("also", f"{other.rule.name}: {_gain(other, estimate, checklist)}")


def _gain(finding: Finding, estimate: Estimate | None, checklist: Checklist) -> str:
    """The estimate, as in the checklist where it is there, and what it rests on."""
    is_counted = SAMPLED.keys().isdisjoint(finding.rule.names)
    source = "from counters" if is_counted else "from warp samples"
    if estimate is None:
        return f"no estimate {source}"
    listed = (
        each.estimate
        for each in checklist.findings_on(finding.group)
        if each.rule.name == finding.rule.name
    )
    headroom = checklist.headroom_of(finding.group)
    most = headroom.factor if headroom and finding.rule.spans != "chain" else math.inf
    return f"{next(listed, None) or factor(min(estimate.likely, most))} {source}"


def _looked_at(conditions: Iterable[Condition]) -> Iterator[Row]:
    for each in conditions:
        text = "; ".join(map(words.compared, each.compared)) or each.text
        yield Row(_MARKS[each.holds], text)


def _obstacle(conditions: Iterable[Condition]) -> str:
    """The first condition that does not hold, else the first that is unknown."""
    unmet = [condition for condition in conditions if not condition.holds]
    first = next((condition for condition in unmet if condition.holds is False), unmet[0])
    if first.holds is None:
        reasons = "; ".join(dict.fromkeys(first.missing.values()))
        text = f"not evaluated, unknown: {', '.join(first.missing) or first.text}"
        return f"{text} ({reasons})" if reasons else text
    missed = [words.missed(value) for value in first.compared if not value.holds]
    if known := _IS_UNKNOWN.fullmatch(first.text):
        return f"{known[1]} is {('known', 'unknown')[int(known[2])]}"
    return "; ".join(missed) or f"not {first.text}"


def _floors(trial: Trial) -> str:
    """The highest resource floors (lower bounds of the time) before and after the fix."""
    now, after = trial.now, trial.after
    duration = trial.group.typical.duration if trial.group else math.nan
    ordered = sorted(now, key=lambda name: -max(now[name], after[name]))
    return "time, with the fix where it changes: " + "; ".join(
        f"{RESOURCES[name]} "
        + " to ".join(
            number(end * duration, "s") for end in dict.fromkeys((now[name], after[name]))
        )
        + (f" (at {REACH[name]:.0%} of peak)" if name in REACH else "")
        for name in ordered[:_FLOORS_SHOWN]
        if now[name] > _LEAST_FLOOR
    )


def _stalls(trial: Trial) -> str:
    """The most frequent stalls that the fix relieves, before and after it."""
    ordered = sorted(trial.stalls.items(), key=lambda stall: -stall[1][0])
    shown = "; ".join(
        f"{name.removeprefix('stall_').replace('_', ' ')} {percent(now)} to {percent(after)}"
        for name, (now, after) in ordered[:_FLOORS_SHOWN]
        if now > _LEAST_FLOOR
    )
    return f"share of the warps' latency, with the fix: {shown}" if shown else ""
