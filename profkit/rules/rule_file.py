"""Rules: what a bottleneck looks like, what its fix relieves, and what to do. Data, never code.

A rules file is YAML, `rules:` with a list of rules; `schemas/rules.json` has its form and
docs/guides/writing-rules.md explains it. Whatever is wrong in it is reported with file, line and,
for a name, the nearest valid one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args, get_origin

import yaml
from msgspec import Meta, convert, field
from msgspec.structs import fields, force_setattr

from profkit.core.errors import BadInput
from profkit.core.expression import Expression, parse
from profkit.core.suggestion import did_you_mean
from profkit.core.text_files import Malformed, read_text
from profkit.core.typed_file import Model, Place, fault
from profkit.core.yaml_files import compose_yaml
from profkit.report.blame import AWAITED, COUNTED, SAMPLES
from profkit.report.catalog import catalog
from profkit.report.gpus import ComputeCapability
from profkit.report.resources import RESOURCES
from profkit.rules.samples import BEFORE, CATEGORIES, SAMPLED, Match
from profkit.timeline import region

CONTEXT: Mapping[str, tuple[str, str]] = {**BEFORE, **SAMPLED}
"""What rules may name beside the catalogue's quantities, with unit and meaning: facts of the launch
right before and of the samples by instruction, unknown where those were not recorded."""

_DEEPEST = 10
_CHANGES = ("relieves", "takes")
_FOR_KERNELS = {"takes", "spans", "match", "blame"}
_LISTED = 40
"""Names that a line lists at most: all keys of a rule, all resources and stall reasons, not the
hundreds of quantities."""

if TYPE_CHECKING:
    Category: TypeAlias = str
else:
    Category = Literal[tuple(CATEGORIES)]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Texts: TypeAlias = Annotated[tuple[Text, ...], Meta(min_length=1)]
Formula: TypeAlias = Annotated[
    str | float, Meta(description="Arithmetic, comparisons and logic over catalogue quantities")
]
Changes: TypeAlias = Annotated[dict[str, Formula], Meta(min_length=1)]
Capability: TypeAlias = Annotated[
    Annotated[str, Meta(pattern=r"^[0-9]{1,2}(\.[0-9])?$")] | Annotated[float, Meta(ge=1, le=99)],
    Meta(description="A compute capability, as 9.0"),
]


class Action(Model, frozen=True):
    """Something to do; `since` and `until` are the compute capabilities that it is for."""

    text: Text
    since: Capability = "0.0"
    until: Capability = "99.9"

    @property
    def span(self) -> tuple[ComputeCapability, ComputeCapability]:
        """The first and the last architecture that it is for."""
        return _capability(self.since), _capability(self.until)

    def suits(self, cc: ComputeCapability) -> bool:
        """Whether it is for an architecture; for all where that is unknown."""
        return cc == (0, 0) or self.span[0] <= cc <= self.span[1]


def _capability(text: str | float) -> ComputeCapability:
    major, _, minor = (text if isinstance(text, str) else f"{text:.1f}").partition(".")
    return int(major), int(minor or 0)


class RuleForm(Model, frozen=True, kw_only=True, dict=True):
    """A bottleneck's signs and what its fix gives.

    `when` are conditions that must all hold. `relieves` maps a resource, or a part of a timeline's
    time, to the share that a fix leaves of it, `takes` a resource to the share of the present time
    that a fix needs of it anew; `time` is the share of the kernel's time that a fix leaves when no
    resource bounds it, with `spans: previous` of the kernel and the one before it together. A rule
    with none of them informs: it promises nothing. `match` selects the samples that `matched`
    stands for: those that any of its blocks does. `blame` names the line quantities whose sum is
    largest at the lines to look at, `evidence` quantities to show beside the conditions, `verify`
    which quantity should move to where. The most useful of the `actions` is first.
    """

    name: Annotated[str, Meta(pattern="^[a-z][a-z0-9_]*$")]
    category: Category
    about: Literal["kernel", "timeline"] = "kernel"
    title: Text
    explanation: Text
    conditions: Annotated[tuple[Formula, ...], Meta(min_length=1)] = field(name="when")
    relief: Changes = field(name="relieves", default_factory=dict)
    needs: Changes = field(name="takes", default_factory=dict)
    spans: Literal["kernel", "previous"] = "kernel"
    left: Formula | None = field(name="time", default=None)
    match: Annotated[tuple[Match, ...], Meta(min_length=1, max_length=10)] = ()
    confidence: Literal["high", "medium", "low"] = "medium"
    effort: Literal["small", "medium", "large"] = "medium"
    blamed: str | Annotated[tuple[str, ...], Meta(min_length=1, max_length=8)] = field(
        name="blame", default=()
    )
    evidence: tuple[str, ...] = ()
    things_to_do: Annotated[tuple[Text | Action, ...], Meta(min_length=1)] = field(name="actions")
    verify: Texts


class RulesFile(Model, frozen=True):
    """A file of rules: what bottlenecks look like, and what their fixes give."""

    rules: tuple[RuleForm, ...]


class Rule(RuleForm, frozen=True, kw_only=True, dict=True):
    """A rule, its formulas read; `place` is where it stands."""

    place: str = ""

    def __repr__(self) -> str:
        return f"<Rule {self.name}: {self.title}>"

    def __post_init__(self) -> None:
        force_setattr(self, "explanation", " ".join(self.explanation.split()))

    @cached_property
    def when(self) -> tuple[Expression, ...]:
        return tuple(parse(str(text)) for text in self.conditions)

    @cached_property
    def relieves(self) -> Mapping[str, Expression]:
        return {name: parse(str(text)) for name, text in self.relief.items()}

    @cached_property
    def takes(self) -> Mapping[str, Expression]:
        return {name: parse(str(text)) for name, text in self.needs.items()}

    @cached_property
    def time(self) -> Expression | None:
        return None if self.left is None else parse(str(self.left))

    @property
    def actions(self) -> tuple[Action, ...]:
        steps = self.things_to_do
        return tuple(Action(step) if isinstance(step, str) else step for step in steps)

    @property
    def blame(self) -> tuple[str, ...]:
        return (self.blamed,) if isinstance(self.blamed, str) else self.blamed

    @property
    def formulas(self) -> tuple[Expression, ...]:
        """What the estimate of its gain rests on; nothing for a rule that promises no time."""
        time = (self.time,) if self.time else ()
        return (*self.relieves.values(), *self.takes.values(), *time)

    @property
    def names(self) -> tuple[str, ...]:
        """The quantities that the rule reads."""
        names = (name for each in (*self.when, *self.formulas) for name in each.names)
        return tuple(dict.fromkeys((*names, *self.evidence)))


_FIELDS = {each.encode_name: each for each in fields(RuleForm)}
_PARTS = [each.encode_name for model in (Action, Match) for each in fields(model)]


@dataclass(frozen=True)
class Fault:
    """Something wrong in a rules file."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class BadRules(BadInput):
    """A rules file that can't be used, with everything that is wrong in it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(f"{faults[0]}{more}", "see all with `profkit rules check`")
        self.faults = tuple(faults)


@cache
def shipped_rules() -> tuple[Rule, ...]:
    """The rules that come with profkit, checked by its tests and not each time they are read."""
    return tuple(row.rule for source in _sources(shipped()) for row in _rows(source, []))


def shipped() -> Path:
    """The folder of the rules that come with profkit."""
    folder = files("profkit.rules") / "data"
    return Path(str(folder)) if folder.is_dir() else Path(__file__).parents[2] / "rules"


def with_own(path: Path) -> tuple[Rule, ...]:
    """The shipped rules and those of a file or folder, which replace shipped ones of their name.

    Raises BadRules, BadInput.
    """
    own, faults = check_rules(path)
    if faults:
        raise BadRules(faults)
    return tuple({rule.name: rule for rule in (*shipped_rules(), *own)}.values())


def check_rules(path: Path) -> tuple[tuple[Rule, ...], tuple[Fault, ...]]:
    """The rules that are right, and everything that is wrong; raises BadInput for no such file."""
    rules: dict[str, Rule] = {}
    faults: list[Fault] = []
    for source in _sources(path):
        for row in _rows(source, faults):
            wrong = [row.fault(place, message) for place, message in _faults_in(row.content)]
            faults += wrong
            if not wrong:
                rule = row.rule
                first = rules.setdefault(rule.name, rule)
                if first is not rule:
                    faults.append(row.fault(("name",), f"{rule.name!r} is in {first.place} too"))
    return tuple(rules.values()), tuple(sorted(faults, key=lambda each: (each.file, each.line)))


def _sources(path: Path) -> list[Path]:
    sources = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not sources:
        raise BadInput(f"{path}: no .yaml file", "name a rules file, or a folder of them")
    return sources


@dataclass(frozen=True)
class _Row:
    """A rule as it stands in its file, and the lines of its parts by path."""

    file: str
    content: Any
    lines: Mapping[Place, int]

    @property
    def rule(self) -> Rule:
        """The rule of a row in which nothing is wrong."""
        place = f"{Path(self.file).name}:{self.lines.get((), 1)}"
        return convert(self.content | {"place": place}, Rule)

    def fault(self, path: Place, message: str) -> Fault:
        while path and path not in self.lines:
            path = path[:-1]
        return Fault(self.file, self.lines.get(path, 1), message)


def _rows(source: Path, faults: list[Fault]) -> Iterator[_Row]:
    lines: dict[Place, int] = {}
    try:
        node = compose_yaml(read_text(source))
        content = None if node is None else _plain(node, (), lines)
        if not isinstance(content, dict) or not isinstance(content.get("rules"), list):
            raise Malformed("a rules file is `rules:` with a list of rules")
    except Malformed as error:
        faults.append(Fault(str(source), error.line or 1, error.message))
        return
    for index, row in enumerate(content["rules"]):
        inside = {path[2:]: line for path, line in lines.items() if path[:2] == ("rules", index)}
        yield _Row(str(source), row, inside)


def _plain(node: yaml.Node, path: Place, lines: dict[Place, int]) -> Any:
    """The data of a YAML node; notes on which line each part stands. Raises Malformed."""
    line = lines[path] = node.start_mark.line + 1
    if len(path) > _DEEPEST:
        raise Malformed("nested too deep", line=line)
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in mapping:
                raise Malformed(f"{name!r} stands twice", line=line)
            mapping[name] = _plain(value, (*path, name), lines)
            lines[*path, name] = line
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, index), lines) for index, item in enumerate(node.value)]
    match node.tag.rpartition(":")[2]:
        case "int" | "float":
            try:
                return float(node.value)
            except ValueError:
                message = f"{node.value!r}: write numbers as 1, 0.5 or 2e6"
                raise Malformed(message, line=line) from None
        case "bool":
            return node.value.lower() in {"true", "yes", "on"}
        case "null":
            return None
    return node.value


def _faults_in(rule: Any) -> Iterator[tuple[Place, str]]:
    """What is wrong in a rule: its form, and the names in parts of it whose form is right."""
    if not isinstance(rule, dict):
        yield (), f"{rule!r:.80} where a rule's mapping belongs"
        return
    yield from (
        ((), f"no key {key!r}{_nearest_or_all(key, _FIELDS)}") for key in rule.keys() - _FIELDS
    )
    sound = {}
    for name, form in _FIELDS.items():
        if name not in rule:
            if form.required:
                yield (), f"no {name}"
        elif wrong := fault(rule[name], form.type):
            place, message = wrong
            word = message.rpartition(" ")[2].strip("'")
            is_choice = get_origin(form.type) is Literal
            choices = get_args(form.type)
            meant = _nearest_or_all(word, choices) if is_choice else _nearest(word, _PARTS)
            yield (name, *place), f"{name}: {message}{meant}"
        else:
            sound[name] = rule[name]
    yield from _faults_of_names(sound)


def _faults_of_names(rule: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Faults of the expressions, resources and quantities that well-formed parts name."""
    about_timeline, lines = rule.get("about") == "timeline", catalog().lines
    known: Mapping[str, Iterable[str]] = {
        "quantity": region.QUANTITIES if about_timeline else [*catalog().quantities, *CONTEXT],
        "resource": region.PARTS if about_timeline else RESOURCES,
        "line quantity": [*lines, *AWAITED, *COUNTED],
        "reason to stall": [name.removeprefix(SAMPLES) for name in lines if SAMPLES in name],
    }
    reads: set[str] = set()
    for path, kind, text in _texts(rule):
        names: Iterable[str] = (text,)
        if kind == "expression":
            try:
                expression = parse(str(text))
            except ValueError as error:
                yield path, str(error)
                continue
            if path[0] == "when" and not expression.is_condition:
                yield path, f"{text!r:.80} is no condition: compare it with something"
            kind, names = "quantity", expression.names
        reads.update(names)
        for name in names:
            if name not in known[kind]:
                yield path, f"{name!r} is no {kind}{_nearest_or_all(name, known[kind])}"
    if "match" not in rule and (matched := reads & {"matched", "matched_active"}):
        yield (), f"{min(matched)!r} stands for what `match` selects, and there is none"
    if about_timeline:
        for part in _FOR_KERNELS & rule.keys():
            yield (part,), f"{part!r} is for rules about kernels, not a timeline"


def _texts(rule: Mapping[str, Any]) -> Iterator[tuple[Place, str, Any]]:
    """The expressions of a rule and its other names: the place, kind and text of each."""
    changes = [((part, key), rule[part][key]) for part in _CHANGES for key in rule.get(part, ())]
    conditions = [(("when", index), text) for index, text in enumerate(rule.get("when", ()))]
    times = [(("time",), rule["time"])] if "time" in rule else []
    yield from ((path, "expression", text) for path, text in [*conditions, *changes, *times])
    yield from ((path, "resource", path[1]) for path, _ in changes)
    for index, name in enumerate(rule.get("evidence", ())):
        yield ("evidence", index), "quantity", name
    blame = rule.get("blame", ())
    for name in [blame] if isinstance(blame, str) else blame:
        yield ("blame",), "line quantity", name
    for index, block in enumerate(rule.get("match", ())):
        for reason in block.get("stall", ()):
            yield ("match", index, "stall"), "reason to stall", reason


def _nearest_or_all(name: str, known: Iterable[str]) -> str:
    """The nearest of the right names; all of them, as far as they go on a line, without one."""
    valid = list(known)
    listed = f"; use {', '.join(valid)}" if len(valid) <= _LISTED else "; see `profkit metrics`"
    return _nearest(name, valid) or listed


def _nearest(name: str, known: Sequence[str]) -> str:
    meant = did_you_mean(name, known, alike=0.5)
    return meant and f"; {meant}"
