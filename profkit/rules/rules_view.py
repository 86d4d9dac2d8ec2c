"""Views of rules: list, explanation, evaluation on a report, accuracy."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.core.compute_capability import NEWEST, OLDEST
from profkit.core.text_files import shipped_text
from profkit.report.floors import WORTH
from profkit.report.resources import RESOURCES
from profkit.rules import finding_text as words
from profkit.rules.samples import SAMPLED, WORTH_SAMPLING, Match
from profkit.rules.story_score import NEAR
from profkit.ui.markdown import code, escape, table_of
from profkit.ui.names import told_apart
from profkit.ui.terminal import rows_of
from profkit.ui.text import factor_range, literal, number, percent, plural
from profkit.ui.view import Grid

if TYPE_CHECKING:
    from profkit.rules.checklist import Checklist
    from profkit.rules.engine import Condition, Trial
    from profkit.rules.finding import Estimate, Finding
    from profkit.rules.rule_file import Action, Rule
    from profkit.rules.score import Accuracy, Alarm, PairScore, Part, Score
    from profkit.rules.score_without_counters import BlindPart
    from profkit.rules.story_score import Applications, StoryScore

_FLOORS_SHOWN = 5  # chosen: two lines at 100 columns
_LEAST_FLOOR = 0.005  # share of the kernel's time that is not rounded to 0%
_IS_UNKNOWN = re.compile(r"known\((\w+)\) == 0")
_ESTIMATE, _FLOORS = "est. speedup", "lower bounds"
_MARKS: Mapping[bool | None, str] = {True: "yes", False: "no", None: "?"}
_CONDITIONS, _REMAINING = "Conditions", "Remaining after a fix"
_MATCHED = "Selected samples"
_STORIES = ("Application", "Fixed", "Named first", "Gain", "Ceiling", "Missed")
_SUMMARY = (
    "",
    "Defects",
    "First",
    "Top 3",
    "Factor",
    "Error",
    "Small gains",
    "In range",
    "Range",
    "False alarms",
)
_PAIRS = ("Pair", "Category", "Measured", "Predicted", "Rank", "ncu")
_BLIND = ("", "First agrees", "First is the defect", "Headroom within 20%", "Floor within 20%")
_HEADROOMS = ("", "Within 20%", "Floor within 20%", "Gain above it", "Headroom over gain")
_DIFFERING = ("Pair", "Declared work", "Full analysis", "Fixed kernel", "Measured", "Why")
_WORDS = {"Pair", "Category", "Application", "Fixed", "Named first", "Missed"}
_INDENT = 4  # columns
_NAME = 40  # characters of a kernel name, chosen: time and rank fit beside it at 80 columns


def list_view(rules: Sequence[Rule]) -> RenderableType:
    """All rules, a line or two each."""
    rows = tuple((rule.name, rule.category, rule.title) for rule in rules)
    more = f"{plural(len(rules), 'rule')}; details: profkit rules explain RULE"
    grid = Grid("", ("Rule", "Category", "Finding"), rows)
    return Group(_table(grid, folded={"Finding"}), Text(), Text(more, "dim"))


def _table(grid: Grid, folded: Collection[str], numbers: Collection[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in grid.columns:
        justify: Literal["left", "right"] = "right" if name in numbers else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name not in folded)
    for row in grid.rows:
        table.add_row(*map(Text, row))
    return table


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
        shown = code if label in {_CONDITIONS, _REMAINING, _MATCHED} else escape
        lines += [f"{label}:", "", *(f"- {shown(entry)}" for entry in entries), ""]
    confidence = "" if rule.formulas else f"{rule.confidence} confidence, "
    lines.append(f"{confidence}{rule.effort} effort.".capitalize())
    return lines


def _facts(rule: Rule) -> Mapping[str, Sequence[str]]:
    """The parts of a rule by label, without empty ones."""
    shares = {**rule.relieves, "FLOP": rule.flop, "time": rule.time}
    parts: Mapping[str, Sequence[str]] = {
        _CONDITIONS: [condition.text for condition in rule.when],
        _MATCHED: list(map(_match, rule.match)),
        _REMAINING: [f"{name}: {share.text}" for name, share in shares.items() if share],
        "Assumes": [rule.assumes] if rule.assumes else (),
        "Actions": list(map(_action, rule.actions)),
        "Verify": rule.verify,
        "Locations ranked by": [" + ".join(rule.blame)] if rule.blame else (),
    }
    return {label: entries for label, entries in parts.items() if entries}


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


def explained(rule: Rule) -> RenderableType:
    """One rule: conditions, formulas of its estimate, actions and verification."""
    rows = [(label, "\n".join(entries)) for label, entries in _facts(rule).items()]
    confidence = "by the width of an estimate's range" if rule.formulas else rule.confidence
    rows += [("Confidence", confidence), ("Effort", rule.effort), ("Defined in", rule.place)]
    head = Text.assemble((rule.name, "bold"), (f"  {rule.category}", "dim"))
    return Group(head, Text(f"{rule.title}. {rule.explanation}"), Text(), rows_of(rows, 0))


def trials_view(
    trials: Sequence[Trial],
    checklist: Checklist,
    others: Sequence[Finding],
) -> RenderableType:
    """A rule on each kernel: in full where it fires, else the condition that does not hold.

    `others` are findings of other rules of the category: of all those on a kernel the checklist has
    the one with the largest estimate.
    """
    names = told_apart((words.kernel_name(trial.group) for trial in trials), _NAME)
    parts: list[RenderableType] = []
    without: list[tuple[str, str]] = []
    for trial in trials:
        name = names[words.kernel_name(trial.group)]
        if trial.finding is None:
            without.append((name, _obstacle(trial.conditions)))
            continue
        own = [other for other in others if other.launch == trial.finding.launch]
        parts += [Text(), *_fired(trial, trial.finding, name, checklist, own)]
    if without:
        parts += [Text(), Text("Does not fire on", "bold"), rows_of(without, _INDENT)]
    return Group(*parts)


def timeline_trial_view(trial: Trial) -> RenderableType:
    """A rule on a timeline: its conditions and its estimate."""
    verb = "Fires on" if trial.finding else "Does not fire on"
    rows = _looked_at(trial.conditions)
    if trial.finding and trial.finding.estimate and not trial.finding.is_negligible:
        rows.append((_ESTIMATE, words.gain(trial.finding.estimate)))
    return Group(Text(), Text(f"{verb} {words.TIMELINE}", "bold"), rows_of(rows, _INDENT))


def _fired(
    trial: Trial,
    finding: Finding,
    name: str,
    checklist: Checklist,
    others: Sequence[Finding],
) -> list[RenderableType]:
    group, rule = trial.group, finding.rule
    items = checklist.findings_on(group)
    rank = next((item.rank for item in items if item.rank and item.rule.name == rule.name), 0)
    smaller = f"saves less than {1 - 1 / WORTH:.0%} of the kernel"
    absent = smaller if finding.is_negligible else "no estimate, or a smaller one in its category"
    place = f"rank {rank}" if rank else f"not ranked: {absent}"
    time = f"  {number(group.median if group else math.nan, 's')}, {place}"
    rows = _looked_at(trial.conditions)
    if finding.lacking:
        rows.append((_ESTIMATE, f"unknown, not recorded: {', '.join(finding.lacking)}"))
    if estimate := finding.estimate:
        rows.append((_ESTIMATE, f"{_gain(finding, estimate, checklist)} {_source(rule)}"))
        rows.append(("assumes", rule.assumes))
        rows.append(("headroom", words.headroom(checklist.headroom_of(group))))
        rows.append((_FLOORS, _floors(trial)))
        if not math.isnan(trial.time):
            rows.append(
                (
                    "time",
                    f"{percent(trial.time)} remains by the rule's formula, before the lower bounds",
                )
            )
    for other in others:
        estimate = None if other.is_negligible else other.estimate
        promise = _gain(other, estimate, checklist) if estimate else "no estimate"
        rows.append(("also", f"{other.rule.name}: {promise} {_source(other.rule)}"))
    head = Text.assemble(("Fires on ", "bold"), (name, "bold"), time)
    return [head, rows_of(rows, _INDENT)]


def _gain(finding: Finding, estimate: Estimate, checklist: Checklist) -> str:
    """A range that ends at the kernel's headroom, as in the checklist."""
    headroom = checklist.headroom_of(finding.group)
    if headroom is None or finding.rule.spans == "chain":
        return words.gain(estimate)
    factors = (estimate.likely, estimate.low, estimate.high)
    return factor_range(*(min(value, headroom.factor) for value in factors))


def _source(rule: Rule) -> str:
    return "from counters" if SAMPLED.keys().isdisjoint(rule.names) else "from warp samples"


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
        text = f"not evaluated, unknown: {', '.join(first.missing) or first.text}"
        if SAMPLED.keys().isdisjoint(first.missing):
            return text
        share = percent(WORTH_SAMPLING)
        return (
            f"{text} (warp samples are read for kernels from {share} of the time on; use --kernel)"
        )
    missed = [words.missed(value) for value in first.compared if not value.holds]
    if known := _IS_UNKNOWN.fullmatch(first.text):
        return f"{known[1]} is known"
    return "; ".join(missed) or f"not {first.text}"


def _floors(trial: Trial) -> str:
    """The highest resource floors (lower bounds of the time) before and after the fix."""
    now, after, duration = (
        trial.now,
        trial.after,
        trial.group.typical.duration if trial.group else math.nan,
    )
    ordered = sorted(now, key=lambda name: -max(now[name], after[name]))
    return "time, with the fix where it changes: " + "; ".join(
        f"{RESOURCES[name]} "
        + " to ".join(
            number(end * duration, "s") for end in dict.fromkeys((now[name], after[name]))
        )
        for name in ordered[:_FLOORS_SHOWN]
        if now[name] > _LEAST_FLOOR
    )


def score_view(score: Score) -> RenderableType:
    """The summary, a row per pair, and misses with their reasons."""
    parts: list[RenderableType] = [Text(_headline(score), "bold")]
    for grid in (*_grids(score), *_story_grids(score.applications)):
        parts += [
            Text(),
            Text(grid.title, "bold"),
            _table(grid, _WORDS, {*grid.columns} - _WORDS - {""}),
        ]
        if grid.note:
            parts.append(Text(grid.note, "dim"))
    rows = [*_misses(score), *_alarms(score.pairs)]
    if rows:
        parts += [Text(), Text("Misses and false alarms", "bold")]
        parts += [rows_of([(literal(name), text)], 0) for name, text in rows]
    return Group(*parts)


def score_markdown(score: Score, note: str) -> str:
    """The page docs/reference/accuracy.md."""
    from profkit.rules.score import LARGE_ERROR, NAMED, SMALL_GAINS, WORTH_AN_ALARM

    text = shipped_text("profkit.rules", "accuracy.md").format(
        alarm=words.factor(WORTH_AN_ALARM),
        named=words.factor(NAMED),
        small=" to ".join(map(words.factor, SMALL_GAINS)),
    )
    lines = [text, f"{escape(_headline(score))}."]
    lines += ["", escape(note)] if note else []
    for grid in (*_grids(score), *_story_grids(score.applications)):
        lines += ["", *table_of(grid)]
    misses, alarms = (
        [f"- {code(name)}: {escape(text)}" for name, text in rows]
        for rows in (_misses(score), _alarms(score.pairs))
    )
    count = f"{len(misses)} of {score.summary.defects}"
    lines += _differing(score.pairs)
    criterion = f"Not ranked first, or an error above {_rounded(LARGE_ERROR)}: {count}.\n"
    lines += ["", "### Misses", "", criterion, *misses]
    lines += ["", "### False alarms", "", *(alarms or ["None."])]
    return "\n".join(lines) + "\n"


def _headline(score: Score) -> str:
    controls = sum(pair.category is None for pair in score.pairs)
    gpus = ", ".join(sorted({literal(pair.gpu) for pair in score.pairs}))
    counts = f"{plural(score.summary.defects, 'defect')}, {plural(controls, 'control')}"
    stories = plural(len(score.applications.stories), "application") if score.applications else ""
    if not score.pairs:
        return stories
    return f"{counts}, recorded on {gpus}{'; ' if stories else ''}{stories}"


def _story_grids(applications: Applications | None) -> list[Grid]:
    """The stories of applications: what was named first, and the ceiling against the gain."""
    if applications is None:
        return []
    summary = (
        f"Planted cause named first: {_rounded(applications.named)}. Gain within the ceiling: "
        f"{_rounded(applications.within)}. Ceiling at most {NEAR - 1:.0%} above the gain of a "
        f"complete fix or of a control: {_rounded(applications.near)}. A replay without a change "
        f"differs from the recorded step by at most {applications.replay_error:.1%}. ~: the gain "
        "of the kernels or copies that were made faster, replayed."
    )
    rows = tuple(_story_row(story) for story in applications.stories)
    return [Grid("Applications", _STORIES, rows, summary)]


def _story_row(story: StoryScore) -> tuple[str, ...]:
    kind = "control" if story.control else "complete" if story.complete else "partial"
    marks = ["exceeded"] if story.is_exceeded else []
    marks += ["far above"] if kind != "partial" and not story.is_near else []
    marks += [] if story.is_named else ["other cause"]
    return (
        literal(story.name),
        f"{story.fix} ({kind})",
        story.first or "-",
        words.factor(story.measured),
        f"{'~' if story.replayed else ''}{words.factor(story.estimated)}",
        ", ".join(marks),
    )


def _grids(score: Score) -> list[Grid]:
    if not score.pairs:
        return []
    part = score.summary
    judges = (
        ("profkit", part, _ranges(part)),
        ("ncu's rules", part.ncu, _NO_RANGES),
        ("always 1.00x", part.no_gain, _NO_RANGES),
    )
    note = f"{plural(part.nothing_to_gain, 'report')} checked for false alarms."
    summary = Grid(
        "All pairs",
        _SUMMARY,
        tuple(_accuracy(name, part.defects, row, ranges) for name, row, ranges in judges),
        note,
    )
    grids = [summary]
    for title, parts in (("profkit by kind", score.kinds), ("profkit by GPU", score.gpus)):
        rows = tuple(
            _accuracy(literal(name.replace("_", " ")), row.defects, row, _ranges(row))
            for name, row in parts.items()
        )
        grids += [Grid(title, _SUMMARY, rows)] if len(parts) > 1 else []
    blind = score.without_counters
    views = [_blind_grid(blind), _headroom_grid(blind)] if blind else []
    return [*grids, *views, _pairs_grid(score.pairs)]


def _blind_grid(part: BlindPart) -> Grid:
    """Agreement of the analysis without counters with the full one."""
    row = (
        f"{plural(part.pairs, 'report')} before a fix",
        *map(_rounded, (part.agree, part.true, part.within, part.near)),
    )
    note = (
        "First finding: the category of the full analysis's, and of the pair's defect, by factors "
        "fitted without the pair's family. Headroom by declared work: within 20% of the full "
        "analysis's factor; its floor within 20% of the time of the full analysis's."
    )
    return Grid("Without counters", _BLIND, (row,), note)


def _headroom_grid(part: BlindPart) -> Grid:
    """Headroom by declared work beside that of the full analysis, before the fix and after it."""
    own, full = (
        (f"{len(names)} of {part.fixes}", words.factor(typical))
        for names, typical in (
            (part.exceeds, part.typical),
            (part.full_exceeds, part.full_typical),
        )
    )
    rows = (
        ("by declared work", "", "", *own),
        ("full analysis", _rounded(part.within), _rounded(part.near), *full),
        ("of the fixed kernel", _rounded(part.within_fixed), _rounded(part.near_fixed), "", ""),
    )
    note = (
        "Within 20%: the headroom by declared work, of the factor of the row's; its floor, of the "
        "time. Of the fixed kernel: the full analysis's headroom after the fix, times the speedup. "
        f"Gain above it: fixes that gained more than the headroom by declared work"
        f"{_listed(part.exceeds)}; by the full analysis{_listed(part.full_exceeds)}. Headroom over "
        "gain: median of fixes that gained."
    )
    if part.declared:
        note += (
            f" {plural(part.declared, 'pair')} declare FLOP, {_rounded(part.counted)} of them "
            "within 20% of those that the fixed kernel was counted to do."
        )
    return Grid("Headroom without counters", _HEADROOMS, rows, note)


def _listed(names: Sequence[str]) -> str:
    return f": {', '.join(map(literal, names))}" if names else ": none"


_NO_RANGES = ("", "")


def _ranges(part: Part) -> tuple[str, str]:
    """Coverage, and the typical half-width of a range as a factor around its middle."""
    width = "n/a" if math.isnan(part.median_width) else words.factor(math.sqrt(part.median_width))
    return _rounded(part.coverage), width


def _accuracy(name: str, defects: int, row: Accuracy, ranges: tuple[str, str]) -> tuple[str, ...]:
    return (
        name,
        str(defects),
        _rounded(row.top1),
        _rounded(row.top3),
        "n/a" if math.isnan(row.factor) else words.factor(row.factor),
        _rounded(row.mean_error),
        _rounded(row.small_error),
        *ranges,
        _rounded(row.false_alarms),
    )


def _rounded(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.0%}"


def _pairs_grid(pairs: Sequence[PairScore]) -> Grid:
    several = len({pair.gpu for pair in pairs}) > 1
    note = (
        "Speedup of the fix: measured, predicted by profkit with its range and rank, predicted by "
        "ncu's rules."
    )
    if untimed := sum(pair.measured == "profiled" for pair in pairs):
        count = plural(untimed, "pair")
        note += f" ~: from the durations in the reports, {count} without latency.json."
    return Grid("Pairs", _PAIRS, tuple(_row(pair, several=several) for pair in pairs), note)


def _row(pair: PairScore, *, several: bool) -> tuple[str, ...]:
    name = literal(f"{pair.name} ({pair.gpu})" if several else pair.name)
    if pair.category is None:
        return (name, "none (control)", *[""] * (len(_PAIRS) - 2))
    achieved = f"{'' if pair.measured == 'timed' else '~'}{words.factor(pair.achieved)}"
    span = f" [{pair.range[0]:.2f}, {pair.range[1]:.2f}]" if pair.range else ""
    return (
        name,
        pair.category + (", no gain" if pair.kind == "no_gain" else ""),
        achieved,
        f"{words.factor(pair.estimated)}{span}",
        str(pair.rank or "-"),
        words.factor(pair.ncu.estimated),
    )


def _differing(pairs: Sequence[PairScore]) -> list[str]:
    """Pairs whose headroom by declared work is off one of the others, with the reasons."""
    rows = tuple(
        (
            literal(pair.name),
            f"{words.factor(blind.headroom)}, {blind.floor or 'n/a'}",
            f"{words.factor(blind.full_headroom)}, {blind.full_floor or 'n/a'}",
            words.factor(blind.fixed_headroom),
            words.factor(pair.achieved) if pair.category else "",
            blind.why or "not yet explained",
        )
        for pair in pairs
        for blind in [pair.without_counters]
        if not (blind.is_within and blind.is_within_fixed)
        and not math.isnan(blind.headroom + blind.full_headroom + blind.fixed_headroom)
    )
    return ["", *table_of(Grid("Headrooms that differ", _DIFFERING, rows))] if rows else []


def _misses(score: Score) -> list[tuple[str, str]]:
    rows = []
    for pair in score.misses:
        named = ", ".join(f"{each.category} {words.factor(each.factor)}" for each in pair.named)
        rank = f"rank {pair.rank}" if pair.rank else f"{pair.category} not named"
        rank += f" (named: {named or 'nothing'})" if pair.rank != 1 else ""
        estimated, achieved = words.factor(pair.estimated), words.factor(pair.achieved)
        why = pair.why or "not yet explained"
        rows.append((pair.name, f"{rank}, predicted {estimated}, measured {achieved}. {why}"))
    return rows


def _place(pair: PairScore, alarm: Alarm) -> str:
    if alarm.report == "after":
        return "after the fix"
    return "where its fix gained nothing" if pair.category else "on a control"


def _alarms(pairs: Iterable[PairScore]) -> list[tuple[str, str]]:
    return [
        (
            pair.name,
            f"{alarm.category} predicts {words.factor(alarm.speedup)} {_place(pair, alarm)}",
        )
        for pair in pairs
        for alarm in pair.alarms
    ]
