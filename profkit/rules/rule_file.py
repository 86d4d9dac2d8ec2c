"""Rules: what a bottleneck looks like, what its fix relieves, and what to do. Data, never code.

A rules file is YAML, `rules:` with a list of rules; `schemas/rules.json` has its form and
docs/rules.md tells how to write one. Whatever is wrong in it is told with file, line and, for a
name, the nearest valid one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin

import yaml
from msgspec import Meta, convert, field, structs
from msgspec.structs import force_setattr

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
from profkit.rules.samples import BEFORE, SAMPLED, Match
from profkit.timeline import region

CONTEXT: Mapping[str, tuple[str, str]] = {**BEFORE, **SAMPLED}
"""What rules may name beside the catalogue's quantities, with unit and meaning: facts of the launch
right before and of the samples by instruction, unknown where those were not recorded."""

_MATCHED = {"matched", "matched_active"}
_DEEPEST = 10
_OF_KERNELS = {"takes", "spans", "match", "blame"}
_LISTED = 40
"""Names that a line lists at most: all keys of a rule, all resources and stall reasons, not the
hundreds of quantities."""

Category = Literal[
    "dram_bandwidth", "l2_bandwidth", "l1_bandwidth", "cache_locality", "global_access_pattern",
    "shared_bank_conflicts", "register_spills", "occupancy_registers", "occupancy_shared_memory",
    "occupancy_block_size", "grid_too_small", "tail_effect", "workload_imbalance",
    "thread_divergence", "barrier_stalls", "atomics_contention", "memory_latency",
    "instruction_dependency", "instruction_issue", "instruction_cache", "pipe_saturated",
    "fp64_in_use", "special_functions", "non_fused_arithmetic", "tensor_cores_unused",
    "tensor_path_legacy", "tensor_underfed", "instruction_overhead", "launch_overhead",
    "host_transfers", "at_the_roof",
]  # fmt: skip
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Texts: TypeAlias = Annotated[tuple[Text, ...], Meta(min_length=1)]
Formula: TypeAlias = Annotated[
    str | float,
    Meta(description="Arithmetic, comparisons and logic over catalogue quantities"),
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


def _capability(told: str | float) -> ComputeCapability:
    major, _, minor = (told if isinstance(told, str) else f"{told:.1f}").partition(".")
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
        return tuple(Action(one) if isinstance(one, str) else one for one in self.things_to_do)

    @property
    def blame(self) -> tuple[str, ...]:
        return (self.blamed,) if isinstance(self.blamed, str) else self.blamed

    @property
    def spans_previous(self) -> bool:
        return self.spans == "previous"

    @property
    def about_timeline(self) -> bool:
        return self.about == "timeline"

    @property
    def gains(self) -> bool:
        """Whether a fix promises time."""
        return bool(self.relief) or bool(self.needs) or self.left is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The quantities that the rule reads."""
        expressions = [*self.when, *self.relieves.values(), *self.takes.values()]
        expressions += [self.time] if self.time else []
        read = (name for expression in expressions for name in expression.names)
        return tuple(dict.fromkeys((*read, *self.evidence)))


_FIELDS = {one.encode_name: one for one in structs.fields(RuleForm)}
_PARTS = [one.encode_name for model in (Action, Match) for one in structs.fields(model)]


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
    found, faults = check_rules(path)
    if faults:
        raise BadRules(faults)
    return tuple({rule.name: rule for rule in (*shipped_rules(), *found)}.values())


def check_rules(path: Path) -> tuple[tuple[Rule, ...], tuple[Fault, ...]]:
    """The rules that are right, and everything that is wrong; raises BadInput for no such file."""
    rules: list[Rule] = []
    faults: list[Fault] = []
    places: dict[str, str] = {}
    for source in _sources(path):
        for row in _rows(source, faults):
            wrong = [row.fault(place, message) for place, message in _wrong_in(row.told)]
            faults += wrong
            if wrong:
                continue
            rule = row.rule
            if rule.name in places:
                faults.append(row.fault(("name",), f"{rule.name!r} is in {places[rule.name]} too"))
            places.setdefault(rule.name, rule.place)
            rules.append(rule)
    return tuple(rules), tuple(sorted(faults, key=lambda fault: (fault.file, fault.line)))


def _sources(path: Path) -> list[Path]:
    sources = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not sources:
        raise BadInput(f"{path}: no .yaml file", "name a rules file, or a folder of them")
    return sources


def categories() -> tuple[str, ...]:
    """The categories that rules may have."""
    return get_args(Category)


@dataclass(frozen=True)
class _Row:
    """A rule as written, and the lines of its parts by path."""

    file: str
    told: Any
    lines: Mapping[Place, int]

    @property
    def rule(self) -> Rule:
        """The rule of a row in which nothing is wrong."""
        place = f"{Path(self.file).name}:{self.lines.get((), 1)}"
        return convert(self.told | {"place": place}, Rule)

    def fault(self, path: Place, message: str) -> Fault:
        while path and path not in self.lines:
            path = path[:-1]
        return Fault(self.file, self.lines.get(path, 1), message)


def _rows(source: Path, faults: list[Fault]) -> Iterator[_Row]:
    lines: dict[Place, int] = {}
    try:
        node = compose_yaml(read_text(source))
        told = _plain(node, (), lines) if node is not None else None
        if not isinstance(told, dict) or not isinstance(told.get("rules"), list):
            raise Malformed("a rules file is `rules:` with a list of rules")
    except Malformed as error:
        faults.append(Fault(str(source), error.line or 1, error.message))
        return
    for at, row in enumerate(told["rules"]):
        inside = {path[2:]: line for path, line in lines.items() if path[:2] == ("rules", at)}
        yield _Row(str(source), row, inside)


def _plain(node: yaml.Node, path: Place, lines: dict[Place, int]) -> Any:
    """The data of a YAML node; notes on which line each part stands. Raises Malformed."""
    line = node.start_mark.line + 1
    if len(path) > _DEEPEST:
        raise Malformed("nested too deep", line=line)
    lines[path] = line
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = str(key.value)
            if name in found:
                raise Malformed(f"{name!r} stands twice", line=key.start_mark.line + 1)
            found[name] = _plain(value, (*path, name), lines)
            lines[(*path, name)] = key.start_mark.line + 1
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, at), lines) for at, item in enumerate(node.value)]
    match node.tag.rpartition(":")[2]:
        case "int" | "float":
            try:
                return float(node.value)
            except ValueError:
                told = f"{node.value!r}: write numbers as 1, 0.5 or 2e6"
                raise Malformed(told, line=line) from None
        case "bool":
            return node.value.lower() in {"true", "yes", "on"}
        case "null":
            return None
    return node.value


def _wrong_in(told: Any) -> Iterator[tuple[Place, str]]:
    """What is wrong in a rule: its form, and the names in parts of it whose form is right."""
    if not isinstance(told, dict):
        yield (), f"{told!r:.80} where a rule's mapping belongs"
        return
    yield from (((), f"no key {key!r}{_meant(key, _FIELDS)}") for key in told.keys() - _FIELDS)
    sound = {}
    for name, form in _FIELDS.items():
        if name not in told:
            if form.required:
                yield (), f"no {name}"
        elif wrong := fault(told[name], form.type):
            place, message = wrong
            word = message.rpartition(" ")[2].strip("'")
            is_choice = get_origin(form.type) is Literal
            meant = _meant(word, get_args(form.type)) if is_choice else _nearest(word, _PARTS)
            yield (name, *place), f"{name}: {message}{meant}"
        else:
            sound[name] = told[name]
    yield from _strangers(sound)


def _strangers(told: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Faults of the expressions, resources and quantities that well-formed parts name."""
    read = set(told.get("evidence", ()))
    for path, text in _texts(told):
        try:
            expression = parse(str(text))
        except ValueError as error:
            yield path, str(error)
            continue
        read |= set(expression.names)
        if path[0] == "when" and not expression.is_condition:
            yield path, f"{text!r:.80} is no condition: compare it with something"
        yield from _unknown(told, ((path, "quantity", name) for name in expression.names))
    yield from _unknown(told, _named(told))
    if "match" not in told and (named := _MATCHED & read):
        yield (), f"{min(named)!r} stands for what `match` selects, and there is none"
    if told.get("about") == "timeline":
        for part in _OF_KERNELS & told.keys():
            yield (part,), f"{part!r} is for rules about kernels, not a timeline"


def _texts(told: Mapping[str, Any]) -> Iterator[tuple[Place, Any]]:
    """The expressions of a rule."""
    yield from ((("when", at), text) for at, text in enumerate(told.get("when", ())))
    for part in ("relieves", "takes"):
        yield from (((part, key), text) for key, text in told.get(part, {}).items())
    yield from ((("time",), told[part]) for part in ("time",) if part in told)


def _named(told: Mapping[str, Any]) -> Iterator[tuple[Place, str, str]]:
    """What a rule names beside its expressions: the kind and the name of each."""
    for part in ("relieves", "takes"):
        yield from (((part, key), "resource", key) for key in told.get(part, ()))
    for at, name in enumerate(told.get("evidence", ())):
        yield ("evidence", at), "quantity", name
    blame = told.get("blame", ())
    for name in [blame] if isinstance(blame, str) else blame:
        yield ("blame",), "line quantity", name
    for at, block in enumerate(told.get("match", ())):
        for reason in block.get("stall", ()):
            yield ("match", at, "stall"), "reason to stall", reason


def _unknown(
    told: Mapping[str, Any], named: Iterable[tuple[Place, str, str]]
) -> Iterator[tuple[Place, str]]:
    of_timeline = told.get("about") == "timeline"
    lines = catalog().lines
    known: Mapping[str, Iterable[str]] = {
        "quantity": region.QUANTITIES if of_timeline else [*catalog().quantities, *CONTEXT],
        "resource": region.PARTS if of_timeline else RESOURCES,
        "line quantity": [*lines, *AWAITED, *COUNTED],
        "reason to stall": [name.removeprefix(SAMPLES) for name in lines if SAMPLES in name],
    }
    for path, kind, name in named:
        if name not in known[kind]:
            yield path, f"{name!r} is no {kind}{_meant(name, known[kind])}"


def _meant(name: str, known: Iterable[str]) -> str:
    """The nearest of the right names; all of them, as far as they go on a line, without one."""
    valid = list(known)
    listed = f"; use {', '.join(valid)}" if len(valid) <= _LISTED else "; see `profkit metrics`"
    return _nearest(name, valid) or listed


def _nearest(name: str, known: Sequence[str]) -> str:
    meant = did_you_mean(name, known, alike=0.5)
    return meant and f"; {meant}"
