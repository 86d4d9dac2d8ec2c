"""Accuracy of what is said of whole programs, on timelines of the unchanged ones.

PROGRAM/  label.yaml      the limit that a person named, and the second: `cause`, `second`
          measured.json   `summary`: `original_ms` of a step without a profiler, and by change its
                          `gain`; changes have the names of switches of `profkit try`
          timeline.sqlite (or another .sqlite) some steps of the unchanged program
"""

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct

from profkit.application.application import read_application
from profkit.application.causes import quantities_of, replayed
from profkit.application.groups import explained_of_gpu
from profkit.application.parts import ON_GPU
from profkit.application.score import read_measured
from profkit.core.errors import BadInput
from profkit.core.text_files import read_text
from profkit.core.yaml_files import shipped_yaml
from profkit.rules.checklist import application_items
from profkit.rules.finding import Finding
from profkit.rules.rule_file import Rule
from profkit.score.stories import (
    BUSY_KERNELS,
    NAMED_STORY,
    ChangeScore,
    GroupShare,
    ProgramScore,
)
from profkit.timeline.export import RECORD
from profkit.timeline.reader import read as read_events

LABEL, MEASURED = "label.yaml", "measured.json"
_GROUPS = 6  # chosen: what fits a table
_CATEGORIES, _CHANGES = shipped_yaml("profkit.application", "labels.yaml").values()


class _Change(Struct, frozen=True):
    gain: float
    gains: tuple[float, ...] = ()


class _Summary(Struct, frozen=True):
    changes: dict[str, _Change]
    original_ms: tuple[float, ...] = ()


class _Measured(Struct, frozen=True):
    summary: _Summary


def programs_in(folders: Sequence[Path]) -> tuple[Path, ...]:
    """The folders of programs below folders, by name."""
    found = {file.parent for folder in folders for file in folder.rglob(LABEL)}
    return tuple(sorted(found, key=lambda folder: folder.name))


def judge_program(folder: Path, rules: Sequence[Rule]) -> ProgramScore:
    """Score a program; raises BadInput where a part of it can't be read."""
    lines = (line.partition(":") for line in read_text(folder / LABEL).splitlines())
    label = {key: value.strip() for key, _, value in lines}
    measured = _measured(folder / MEASURED)
    timeline = min(folder.glob("*.sqlite"), default=None)
    if timeline is None:
        raise BadInput(f"{folder}: {LABEL} without a timeline (.sqlite)", RECORD)
    application = read_application(read_events(timeline))
    steps = [process.steps for process in application.processes]
    times = measured.original_ms
    what_if = replayed(application.events, steps, median(times) / 1e3 if times else None)
    if what_if is None:
        raise BadInput(f"{timeline}: no step repeats", "record more steps")
    found = application_items(quantities_of(application.events, what_if), rules)
    causes = dict.fromkeys(
        item.rule.category for item in found if item.rule.category != BUSY_KERNELS
    )
    likely = {item.rule.category: item.speedup for item in reversed(found)}
    groups, parts = application.groups, application.processes[0].parts
    return ProgramScore(
        name=folder.name,
        cause=(cause := label.get("cause", "")),
        second=label.get("second", ""),
        accepted=tuple(sorted(accepted := _CATEGORIES.get(cause, [cause]))),
        contradicted=_contradicted(measured, accepted, rules),
        named=tuple((category, likely[category]) for category in causes),
        best=_best(measured, rules),
        explained=explained_of_gpu(groups, parts, found),
        busy=sum(parts.share(part) for group in ON_GPU for part in parts.group(group)),
        groups=tuple(GroupShare(each.name, each.share, each.text) for each in groups[:_GROUPS]),
        changes=tuple(_change(*change, found, rules) for change in measured.changes.items()),
        step_ms=steps[0].median * 1e3,
    )


def _measured(path: Path) -> _Summary:
    """What was measured; nothing without a file."""
    return read_measured(path, _Measured).summary if path.is_file() else _Summary({})


def _meant(name: str, rules: Sequence[Rule]) -> list[str]:
    """The rules that a change is of, that which estimates it first."""
    own = [rule.name for rule in rules if rule.switches and rule.switches[0] == name]
    others = [rule.name for rule in rules if name in rule.switches[1:]]
    return [*own, *_CHANGES.get(name, ()), *others]


def _best(measured: _Summary, rules: Sequence[Rule]) -> tuple[str, ...]:
    """The categories of the change that gained most; () where none gained enough to name it."""
    gains = {name: each.gain for name, each in measured.changes.items() if _meant(name, rules)}
    name = max(gains, key=lambda each: gains[each], default="")
    meant = _meant(name, rules) if name and gains[name] >= NAMED_STORY else ()
    return tuple(sorted({rule.category for rule in rules if rule.name in meant}))


def _contradicted(measured: _Summary, accepted: Collection[str], rules: Sequence[Rule]) -> bool:
    """Whether the changes of the labeled cause gained nothing, and another one did."""
    categories = {rule.name: rule.category for rule in rules}
    own = [
        each.gain
        for name, each in measured.changes.items()
        if (meant := _meant(name, rules)) and categories.get(meant[0]) in accepted
    ]
    most = max((each.gain for each in measured.changes.values()), default=0.0)
    return bool(own) and max(own) < NAMED_STORY <= most


def _change(
    name: str, change: _Change, found: Sequence[Finding], rules: Sequence[Rule]
) -> ChangeScore:
    """The measured and the estimated gain of a change."""
    meant = _meant(name, rules)
    items = {item.rule.name: item for item in found}
    item = next((items[rule] for rule in meant if rule in items), None)
    low, high = item.range if item else (1.0, 1.0)
    likely = item.speedup if item else 1.0
    rounds = change.gains or (change.gain,)
    return ChangeScore(
        name=name,
        measured=change.gain,
        rounds=(min(rounds), max(rounds)),
        low=low,
        likely=likely,
        high=high,
        bound=item.bound if item else math.nan,
        rules=tuple(meant),
    )
