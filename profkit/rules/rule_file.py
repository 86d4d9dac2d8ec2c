"""Rules: conditions of a bottleneck, the effect of its fix, and actions. Data, never code.

A rules file is YAML, `rules:` with a list of rules; `schemas/rules.json` is its schema and
docs/guides/writing-rules.md explains it. All faults are reported with file and line, a wrong value
or name with the valid ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args, get_origin

import yaml
from msgspec import Meta, ValidationError, convert, field
from msgspec.structs import fields, force_setattr

from profkit.core.compute_capability import ComputeCapability
from profkit.core.errors import BadInput
from profkit.core.expression import Expression, parse
from profkit.core.suggestion import did_you_mean
from profkit.core.text_files import Malformed, read_text
from profkit.core.typed_file import Model, Place, fault
from profkit.core.yaml_files import compose_yaml
from profkit.machine_code.blame import AWAITED, COUNTED, SAMPLES
from profkit.report.catalog import catalog
from profkit.report.resources import RESOURCES
from profkit.rules.samples import (
    APPLICATION,
    CATEGORIES,
    CHAIN,
    GROUPS,
    SAMPLED,
    SAVINGS,
    Match,
)
from profkit.timeline import region

CONTEXT: Mapping[str, tuple[str, str]] = {**CHAIN, **SAMPLED}
"""Quantities for rules besides the catalog's, with unit and meaning: of the previous launch and
from warp samples by instruction, unknown where those were not recorded."""

DIVISION = "grid_too_small"
LATENCY = "warp_latency"
"""All stalls of a warp together: what a fix may relieve besides resources and single reasons."""

_DEEPEST = 10  # levels of a file, chosen: twice what a rule needs
_SIMILAR = 0.5  # of a misspelled name, chosen: a whole word less or more is still close
_CHANGES = ("relieves", "takes")
_SHARES = ("time", "flop", "bound")
_FOR_APPLICATIONS = {"reached", "switches"}
_FOR_KERNELS = {"takes", "flop", "first", "numerics", "spans", "match", "blame"}
_OTHERS = {"timeline": "a timeline", "application": "an application"}
_LISTED = 50
"""The most names in a message: all keys, resources, categories and stall reasons, not the hundreds
of quantities."""

if TYPE_CHECKING:
    Category: TypeAlias = str
else:
    Category = Literal[tuple(CATEGORIES)]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Texts: TypeAlias = Annotated[tuple[Text, ...], Meta(min_length=1)]
Formula: TypeAlias = Annotated[
    str | float, Meta(description="Arithmetic, comparisons and logic over catalog quantities")
]
Changes: TypeAlias = Annotated[dict[str, Formula], Meta(min_length=1)]
Capability: TypeAlias = Annotated[
    Annotated[str, Meta(pattern=r"^[0-9]{1,2}(\.[0-9])?$")] | Annotated[float, Meta(ge=1, le=99)],
    Meta(description="A compute capability, such as 9.0"),
]


class Action(Model, frozen=True):
    """An action; `since` and `until` are the first and last compute capability it applies to,
    `when` what of a kernel leaves room for it."""

    text: Text
    since: Capability = "0.0"
    until: Capability = "99.9"
    when: Formula = ""

    @property
    def span(self) -> tuple[ComputeCapability, ComputeCapability]:
        """The first and the last compute capability it applies to."""
        return _capability(self.since), _capability(self.until)

    def has_room(self, values: Mapping[str, float]) -> bool:
        """Whether it may gain something; true where quantities for that are unknown."""
        if not self.when:
            return True
        import numpy as np  # listing rules needs none

        condition = parse(str(self.when))
        known = {name: np.array(values.get(name, np.nan)) for name in condition.names}
        return float(condition(known)) != 0

    def suits(self, cc: ComputeCapability) -> bool:
        """Whether it applies to a compute capability; true where that is unknown."""
        return cc == (0, 0) or self.span[0] <= cc <= self.span[1]


def _framework(switch: str) -> str:
    """The framework whose programs a switch of `profkit try` changes."""
    return "jax" if switch.startswith(("jax-", "xla-")) else "torch"


def _capability(text: str | float) -> ComputeCapability:
    major, _, minor = (text if isinstance(text, str) else f"{text:.1f}").partition(".")
    return int(major), int(minor or 0)


Confidence = Literal["high", "medium", "low"]


class RuleForm(Model, frozen=True, kw_only=True, dict=True):
    """The conditions of a bottleneck and the effect of its fix.

    `when` are conditions that must all hold. `relieves` maps a resource, a stall reason (or all of
    them: `warp_latency`), a group of those, or a part of the time of a timeline or of an
    application's step, to the share of it that remains after a complete fix, `takes` a
    resource to its additional use by the fix, as a share of the present time; `time` is the share
    of the kernel's time that remains if no resource bounds it, with `spans: chain` of all kernels
    in its chain together. A rule with none of them is informative: it has no estimate. `flop` is
    the share of the kernel's FLOP outside tensor cores that the fix leaves. `bound` is the factor
    that what the fix adds (SMs, warps) allows, which no range exceeds; of rules that divide the
    work it is known only where the rest of an estimate is missing.
    `first` says that other findings on the kernel are void until its fix, `numerics` that the fix
    computes in another data type. `assumes` is
    what its formulas take for granted of the fix, "" where they follow from what was counted;
    `confidence` is that of a rule without an estimate, others have the width of their range.
    `match` selects the warp samples for `matched`: those of any of its blocks. `blame` names the
    line quantities whose sum ranks the locations, `evidence` quantities to list besides the
    conditions, `verify` how quantities should change after the fix. The most useful of the
    `actions` is first. Of an application's step, `reached` are the powers of the replayed factor
    that recorded fixes reached, low, likely and high, no more than all idle time where a fix is of
    `idle` time; `switches` are those of `profkit try` that make the change, the first of which is
    what is estimated.
    """

    name: Annotated[str, Meta(pattern="^[a-z][a-z0-9_]*$")]
    category: Category
    about: Literal["kernel", "timeline", "application"] = "kernel"
    title: Text
    explanation: Text
    conditions: Annotated[tuple[Formula, ...], Meta(min_length=1)] = field(name="when")
    relief: Changes = field(name="relieves", default_factory=dict)
    needs: Changes = field(name="takes", default_factory=dict)
    spans: Literal["kernel", "chain"] = "kernel"
    left: Formula | None = field(name="time", default=None)
    operations: Formula | None = field(name="flop", default=None)
    allowed: Formula | None = field(name="bound", default=None)
    first: bool = False
    numerics: bool = False
    match: Annotated[tuple[Match, ...], Meta(min_length=1, max_length=10)] = ()
    assumes: Text = ""
    confidence: Confidence = "medium"
    effort: Literal["small", "medium", "large"] = "medium"
    blamed: str | Annotated[tuple[str, ...], Meta(min_length=1, max_length=8)] = field(
        name="blame", default=()
    )
    evidence: tuple[str, ...] = ()
    reached: tuple[float, float, float] | None = None
    idle: bool = False
    switches: tuple[Text, ...] = ()
    things_to_do: Annotated[tuple[Text | Action, ...], Meta(min_length=1)] = field(name="actions")
    verify: Texts


class RulesFile(Model, frozen=True):
    """A file of rules: conditions of bottlenecks and effects of their fixes."""

    rules: tuple[RuleForm, ...]


class Rule(RuleForm, frozen=True, kw_only=True, dict=True):
    """A rule with parsed formulas; `place` is its file and line."""

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
        parts = {part: text for name, text in self.relief.items() for part in GROUPS.get(name, ())}
        alone = {name: text for name, text in self.relief.items() if name not in GROUPS}
        return {name: parse(str(text)) for name, text in (parts | alone).items()}

    @cached_property
    def takes(self) -> Mapping[str, Expression]:
        return {name: parse(str(text)) for name, text in self.needs.items()}

    @cached_property
    def time(self) -> Expression | None:
        return None if self.left is None else parse(str(self.left))

    @cached_property
    def flop(self) -> Expression | None:
        return None if self.operations is None else parse(str(self.operations))

    @cached_property
    def bound(self) -> Expression | None:
        return None if self.allowed is None else parse(str(self.allowed))

    @property
    def divides(self) -> bool:
        """Whether its fix divides the work otherwise: no counter says whether that can be done."""
        return self.category == DIVISION and not self.first

    @property
    def is_apart(self) -> bool:
        """Whether its fix changes numerics or the division of work, and stands beside others."""
        return self.numerics or self.divides

    @property
    def actions(self) -> tuple[Action, ...]:
        steps = self.things_to_do
        return tuple(Action(step) if isinstance(step, str) else step for step in steps)

    def actions_on(
        self, cc: ComputeCapability, values: Mapping[str, float] | None = None
    ) -> tuple[str, ...]:
        """Those that apply to a compute capability, and to a kernel of these quantities."""
        suiting = (action for action in self.actions if action.suits(cc))
        texts = (action.text for action in suiting if action.has_room(values or {}))
        measured = tuple(map(measure_action, self.switches_in(values or {})[:1]))
        is_open = self.about == "application" and not measured
        return (*texts, *measured, *[NO_SWITCH] * is_open)

    def switches_in(self, values: Mapping[str, float]) -> tuple[str, ...]:
        """The switches that exist for the framework of a program with these quantities."""
        return tuple(name for name in self.switches if values.get(_framework(name), 1) != 0)

    @property
    def blame(self) -> tuple[str, ...]:
        return (self.blamed,) if isinstance(self.blamed, str) else self.blamed

    @property
    def formulas(self) -> tuple[Expression, ...]:
        """The formulas of its estimate; none for an informative rule."""
        time = (self.time,) if self.time else ()
        return (*self.relieves.values(), *self.takes.values(), *time)

    @property
    def names(self) -> tuple[str, ...]:
        """The quantities that the rule reads."""
        others = filter(None, (self.flop, self.bound))
        names = (name for each in (*self.when, *self.formulas, *others) for name in each.names)
        return tuple(dict.fromkeys((*names, *self.evidence)))


NO_SWITCH = "No switch of profkit try does this: change the program, and time a step of both"


def measure_action(switch: str) -> str:
    """The action that measures what a switch gives."""
    return f"Measure it: profkit try --switch {switch} -- PROGRAM"


def is_stall(name: str) -> bool:
    """Whether this names the cycles that a warp stalls for a reason, or for all."""
    return name == LATENCY or name.startswith("stall_")


_FIELDS = {each.encode_name: each for each in fields(RuleForm)}
_KEYS = {
    name: [each.encode_name for each in fields(model)]
    for name, model in (("actions", Action), ("match", Match))
}


@dataclass(frozen=True)
class Fault:
    """A fault in a rules file."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class BadRules(BadInput):
    """A rules file that can't be used, with all its faults."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(f"{faults[0]}{more}", "list all with `profkit rules check`")
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
    """The valid rules, and all faults; raises BadInput where the file is missing."""
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
                    faults.append(
                        row.fault(
                            ("name",), f"duplicate rule name {rule.name!r}, first in {first.place}"
                        )
                    )
    return tuple(rules.values()), tuple(sorted(faults, key=lambda each: (each.file, each.line)))


def _sources(path: Path) -> list[Path]:
    sources = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not sources:
        raise BadInput(
            f"{path}: no .yaml file in this directory", "pass a rules file or a directory of them"
        )
    return sources


@dataclass(frozen=True)
class _Row:
    """A rule of a file, and the lines of its parts by path."""

    file: str
    content: Any
    lines: Mapping[Place, int]

    @property
    def rule(self) -> Rule:
        """The rule of a row without faults."""
        place = f"{Path(self.file).name}:{self.lines.get((), 1)}"
        try:
            return convert(self.content | {"place": place}, Rule)
        except ValidationError as error:  # of a shipped rule, which nobody checked yet
            remedy = "list all with `profkit rules check rules/`"
            raise BadInput(f"{place}: {error}", remedy) from None

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
            raise Malformed("expected `rules:` with a list of rules")
    except Malformed as error:
        faults.append(Fault(str(source), error.line or 1, error.message))
        return
    for index, row in enumerate(content["rules"]):
        inside = {path[2:]: line for path, line in lines.items() if path[:2] == ("rules", index)}
        yield _Row(str(source), row, inside)


def _plain(node: yaml.Node, path: Place, lines: dict[Place, int]) -> Any:
    """The data of a YAML node; stores the line of each part. Raises Malformed."""
    line = lines[path] = node.start_mark.line + 1
    if len(path) > _DEEPEST:
        raise Malformed(f"nested too deeply (more than {_DEEPEST} levels)", line=line)
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in mapping:
                raise Malformed(f"duplicate key {name!r}", line=line)
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
                message = f"invalid number {node.value!r}; write 1, 0.5 or 2e6"
                raise Malformed(message, line=line) from None
        case "bool":
            return node.value.lower() in {"true", "yes", "on"}
        case "null":
            return None
    return node.value


def _faults_in(rule: Any) -> Iterator[tuple[Place, str]]:
    """The faults of a rule: of its form, and of the names in all parts whose form is valid."""
    if not isinstance(rule, dict):
        yield (), f"expected a rule (a mapping), got {rule!r:.80}"
        return
    for key in rule.keys() - _FIELDS:
        yield (key,), f"unknown key {key!r}{_valid(key, _FIELDS)}"
    sound = {}
    for name, form in _FIELDS.items():
        if name not in rule:
            if form.required:
                yield (), f"missing key {name!r}"
            continue
        faults = list(_faults_of_form(rule[name], form.type))
        for place, message in faults:
            yield (name, *place), f"{name}: {message}{_choices(name, message)}"
        bad = {place[:1] for place, _ in faults}
        if () not in bad:
            parts = _parts(rule[name])
            sound[name] = {key: part for key, part in parts.items() if (key,) not in bad}
    yield from _faults_of_names(sound)


def _parts(value: Any) -> dict[Any, Any]:
    """The items of a list or a mapping by index or key; a single value has the key None."""
    if isinstance(value, dict):
        return value
    return dict(enumerate(value)) if isinstance(value, list) else {None: value}


def _faults_of_form(value: Any, kind: Any) -> Iterator[tuple[Place, str]]:
    """Where a part of a rule does not have the form of its kind: the first fault of each item."""
    items = list(_parts(value).items())
    while wrong := fault(value, kind):
        place, message = wrong
        if not place:
            yield (), message
            return
        index = next(
            index
            for index, (key, _) in enumerate(items)
            if place[0] == (key if isinstance(value, dict) else index)
        )
        yield (items[index][0], *place[1:]), message
        del items[index]
        if not items:
            return
        value = dict(items) if isinstance(value, dict) else [item for _, item in items]


def _choices(name: str, message: str) -> str:
    """The valid values of a field, or the valid keys of its items, after a message about one."""
    word = message.rpartition(" ")[2].strip("'")
    kind = _FIELDS[name].type
    if get_origin(kind) is Literal:
        return _valid(word, get_args(kind))
    return _valid(word, _KEYS[name]) if "unknown field" in message else ""


def _faults_of_names(rule: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Faults of the expressions, resources and quantities that well-formed parts name."""
    about = next(iter(rule.get("about", {}).values()), "kernel")
    lines = catalog().lines
    known: Mapping[str, Iterable[str]] = {
        "quantity": {"timeline": region.QUANTITIES, "application": APPLICATION}.get(
            about, [*catalog().quantities, *CONTEXT]
        ),
        "resource": {"timeline": region.PARTS, "application": SAVINGS}.get(
            about, [*RESOURCES, LATENCY, *filter(is_stall, catalog().quantities), *GROUPS]
        ),
        "line quantity": [*lines, *AWAITED, *COUNTED],
        "stall reason": [name.removeprefix(SAMPLES) for name in lines if SAMPLES in name],
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
                yield path, f"not a condition: {text!r:.80}; add a comparison"
            kind, names = "quantity", expression.names
        reads.update(names)
        for name in names:
            if name not in known[kind]:
                yield path, f"unknown {kind} {name!r}{_valid(name, known[kind])}"
    if "match" not in rule and (matched := reads & {"matched", "matched_active"}):
        yield (), f"{min(matched)!r} requires `match`, which this rule lacks"
    others = {
        *(_FOR_KERNELS if about in _OTHERS else ()),
        *(_FOR_APPLICATIONS if about != "application" else ()),
    }
    for part in sorted(others & rule.keys()):
        yield (part,), f"{part!r} is not valid in a rule about {_OTHERS.get(about, 'a kernel')}"


def _texts(rule: Mapping[str, Any]) -> Iterator[tuple[Place, str, Any]]:
    """The expressions of a rule and its other names: the place, kind and text of each."""
    changes = [((part, key), text) for part in _CHANGES for key, text in rule.get(part, {}).items()]
    conditions = [(("when", index), text) for index, text in rule.get("when", {}).items()]
    shares = [((part,), text) for part in _SHARES for text in rule.get(part, {}).values()]
    yield from ((path, "expression", text) for path, text in [*conditions, *changes, *shares])
    yield from ((path, "resource", path[1]) for path, _ in changes)
    for index, action in rule.get("actions", {}).items():
        if isinstance(action, dict) and "when" in action:
            yield ("actions", index, "when"), "expression", action["when"]
    for index, name in rule.get("evidence", {}).items():
        yield ("evidence", index), "quantity", name
    for name in rule.get("blame", {}).values():
        yield ("blame",), "line quantity", name
    for index, block in rule.get("match", {}).items():
        for reason in block.get("stall", ()):
            yield ("match", index, "stall"), "stall reason", reason


def _valid(name: str, known: Iterable[str]) -> str:
    """The nearest of the valid names, and all of them where they are few."""
    valid = list(known)
    meant = did_you_mean(name, valid, alike=_SIMILAR)
    if len(valid) > _LISTED:
        return f"; {meant or 'see `profkit metrics`'}"
    listed = f"valid: {', '.join(valid)}"
    return f"; {meant} ({listed})" if meant else f"; {listed}"
