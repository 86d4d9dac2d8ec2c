"""Rules: what a bottleneck looks like, what its fix relieves, and what to do. Data, never code.

A rules file is YAML, `rules:` with a list of rules; `schemas/rules.json` has its form and
docs/rules.md tells how to write one. Whatever is wrong in it is told with file, line and, for a
name, the nearest valid one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from profkit.core.errors import BadInput
from profkit.core.expression import Expression, parse
from profkit.core.suggestion import did_you_mean
from profkit.core.text_files import Malformed, read_text, shipped_json
from profkit.core.yaml_files import compose_yaml
from profkit.report.blame import AWAITED, COUNTED, SAMPLES
from profkit.report.catalog import ComputeCapability, catalog
from profkit.report.floors import RESOURCES
from profkit.rules.samples import SAMPLED, Match
from profkit.timeline import region

CONTEXT: Mapping[str, tuple[str, str]] = {
    "handed_over_bytes": (
        "B",
        "What the launch before wrote to DRAM and this one read, at most; 0 where a kernel follows "
        "itself, or not always the same other one.",
    ),
    "previous_duration": ("s", "Duration of the launch before."),
    "previous_dram_bytes": ("B", "DRAM traffic of the launch before."),
    **SAMPLED,
}
"""What rules may name beside the catalogue's quantities, with unit and meaning: facts of the launch
right before and of the samples by instruction, unknown where those were not recorded."""

_TIME = "time"
_MATCHED = ("matched", "matched_active")
_PATTERNS = ("stall", "opcode", "producer", "line")
_KINDS = {"object": "a mapping", "array": "a list", "string": "text"}
_DEEPEST = 10
_OF_KERNELS = ("takes", "spans", "match", "blame")


@dataclass(frozen=True)
class Action:
    """Something to do; `since` and `until` are the compute capabilities that it is for."""

    text: str
    since: ComputeCapability = (0, 0)
    until: ComputeCapability = (99, 9)

    def suits(self, cc: ComputeCapability) -> bool:
        """Whether it is for an architecture; for all where that is unknown."""
        return cc == (0, 0) or self.since <= cc <= self.until


@dataclass(frozen=True)
class Rule:
    """A bottleneck's signs and what its fix gives.

    `when` are conditions that must all hold. `relieves` maps a resource to the share of its need
    that a fix leaves, `takes` one to the share of the present time that the fix needs of it anew;
    `time` is the share of the kernel's time that it leaves when no resource bounds it. A rule with
    none of them informs: it promises nothing. With `spans_previous` that is the time of the kernel
    and the one before it together. `blame` names the per-instruction quantities whose largest sums
    are the lines to look at. A rule `about_timeline` names quantities of a timeline and relieves
    parts of its time (analysis.region).
    """

    name: str
    category: str
    title: str
    explanation: str
    when: tuple[Expression, ...]
    relieves: Mapping[str, Expression]
    takes: Mapping[str, Expression]
    time: Expression | None
    spans_previous: bool
    match: tuple[Match, ...]
    confidence: str
    effort: str
    blame: tuple[str, ...]
    evidence: tuple[str, ...]
    actions: tuple[Action, ...]
    verify: tuple[str, ...]
    place: str
    about_timeline: bool = False

    @property
    def gains(self) -> bool:
        """Whether a fix promises time."""
        return bool(self.relieves) or bool(self.takes) or self.time is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The quantities that the rule reads."""
        expressions = [*self.when, *self.relieves.values(), *self.takes.values()]
        expressions += [self.time] if self.time else []
        read = (name for expression in expressions for name in expression.names)
        return tuple(dict.fromkeys((*read, *self.evidence)))


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
    unread: list[Fault] = []
    return tuple(_rule(row) for source in _sources(shipped()) for row in _rows(source, unread))


def shipped() -> Path:
    """The folder of the rules that come with profkit."""
    folder = files("profkit.rules") / "data"
    return Path(str(folder)) if folder.is_dir() else Path(__file__).parents[2] / "rules"


def with_own(path: Path) -> tuple[Rule, ...]:
    """The shipped rules and those of a file or folder, which replace shipped ones of their name.

    Raises BadRules, BadInput.
    """
    own = {rule.name: rule for rule in read_rules(path)}
    return tuple(({rule.name: rule for rule in shipped_rules()} | own).values())


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The rules of a file, or of all `.yaml` files of a folder; raises BadRules, BadInput."""
    found, faults = check_rules(path)
    if faults:
        raise BadRules(faults)
    return found


def check_rules(path: Path) -> tuple[tuple[Rule, ...], tuple[Fault, ...]]:
    """The rules that are right, and everything that is wrong; raises BadInput for no such file."""
    rules: list[Rule] = []
    faults: list[Fault] = []
    places: dict[str, str] = {}
    for source in _sources(path):
        for row in _rows(source, faults):
            wrong = _wrong_in(row)
            faults += wrong
            if wrong:
                continue
            rule = _rule(row)
            if rule.name in places:
                faults.append(row.fault(("name",), f"{rule.name!r} is in {places[rule.name]} too"))
            places.setdefault(rule.name, rule.place)
            rules.append(rule)
    return tuple(rules), tuple(sorted(faults, key=lambda fault: (fault.file, fault.line)))


def _wrong_in(row: _Row) -> list[Fault]:
    """What is wrong in a rule: its form, and the names in parts of it whose form is right."""
    faults, ill_formed = [], set()
    for path, message in _ill_formed(row):
        faults.append(row.fault(path, message))
        ill_formed.add(path[0] if path else "")
    if not isinstance(row.told, dict):
        return faults
    sound = {key: part for key, part in row.told.items() if key not in ill_formed}
    return faults + list(_unknown_names(replace(row, told=sound)))


def _sources(path: Path) -> list[Path]:
    sources = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not sources:
        raise BadInput(f"{path}: no .yaml file", "name a rules file, or a folder of them")
    return sources


def schema() -> dict[str, Any]:
    """The JSON Schema of a rules file."""
    loaded: dict[str, Any] = shipped_json("profkit.schemas", "rules.json")
    return loaded


def categories() -> tuple[str, ...]:
    """The categories that rules may have."""
    return tuple(schema()["$defs"]["rule"]["properties"]["category"]["enum"])


@dataclass(frozen=True)
class _Row:
    """A rule as written, and the lines of its parts by path."""

    file: str
    told: Mapping[str, Any]
    lines: Mapping[tuple[str | int, ...], int]

    def fault(self, path: tuple[str | int, ...], message: str) -> Fault:
        while path and path not in self.lines:
            path = path[:-1]
        return Fault(self.file, self.lines.get(path, 1), message)


def _rows(source: Path, faults: list[Fault]) -> Iterator[_Row]:
    try:
        node = compose_yaml(read_text(source))
    except Malformed as error:
        faults.append(Fault(str(source), error.line or 1, error.message))
        return
    lines: dict[tuple[str | int, ...], int] = {}
    try:
        told = _plain(node, (), lines) if node is not None else None
    except _Unplain as error:
        faults.append(Fault(str(source), error.line, str(error)))
        return
    if not isinstance(told, dict) or not isinstance(told.get("rules"), list):
        faults.append(Fault(str(source), 1, "a rules file is `rules:` with a list of rules"))
        return
    for at, row in enumerate(told["rules"]):
        inside = {path[2:]: line for path, line in lines.items() if path[:2] == ("rules", at)}
        yield _Row(str(source), row, inside)


class _Unplain(ValueError):
    """YAML that is more than mappings, lists and scalars."""

    def __init__(self, message: str, node: yaml.Node) -> None:
        super().__init__(message)
        self.line = node.start_mark.line + 1


def _plain(
    node: yaml.Node, path: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int]
) -> Any:
    """The data of a YAML node; notes on which line each part stands. Raises _Unplain."""
    if len(path) > _DEEPEST:
        raise _Unplain("nested too deep", node)
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = str(key.value)
            if name in found:
                raise _Unplain(f"{name!r} stands twice", key)
            found[name] = _plain(value, (*path, name), lines)
            lines[(*path, name)] = key.start_mark.line + 1
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, at), lines) for at, item in enumerate(node.value)]
    return _scalar(node)


def _scalar(node: yaml.Node) -> Any:
    match node.tag:
        case "tag:yaml.org,2002:int" | "tag:yaml.org,2002:float":
            try:
                return float(node.value)
            except ValueError:
                raise _Unplain(f"{node.value!r}: write numbers as 1, 0.5 or 2e6", node) from None
        case "tag:yaml.org,2002:bool":
            return node.value.lower() in {"true", "yes", "on"}
        case "tag:yaml.org,2002:null":
            return None
    return node.value


def _rule(row: _Row) -> Rule:
    """The rule of a row in which nothing is wrong."""
    told = row.told
    return Rule(
        name=told["name"],
        category=told["category"],
        title=told["title"],
        explanation=" ".join(told["explanation"].split()),
        when=tuple(parse(str(text)) for text in told["when"]),
        relieves={key: parse(str(text)) for key, text in told.get("relieves", {}).items()},
        takes={key: parse(str(text)) for key, text in told.get("takes", {}).items()},
        time=parse(str(told[_TIME])) if _TIME in told else None,
        spans_previous=told.get("spans") == "previous",
        match=tuple(_match(block) for block in told.get("match", ())),
        confidence=told.get("confidence", "medium"),
        effort=told.get("effort", "medium"),
        blame=_blamed(told),
        evidence=tuple(told.get("evidence", ())),
        actions=tuple(_action(action) for action in told.get("actions", ())),
        verify=tuple(told.get("verify", ())),
        place=f"{Path(row.file).name}:{row.lines.get((), 1)}",
        about_timeline=_is_about_timeline(row),
    )


def _match(told: Mapping[str, Any]) -> Match:
    return Match(
        in_loop=bool(told.get("in_loop", False)),
        **{key: tuple(told[key]) for key in _PATTERNS if key in told},
    )


def _blamed(told: Mapping[str, Any]) -> tuple[str, ...]:
    blame = told.get("blame", ())
    return (blame,) if isinstance(blame, str) else tuple(blame)


def _action(told: str | Mapping[str, Any]) -> Action:
    if isinstance(told, str):
        return Action(told)
    bounds = {key: _cc(told[key]) for key in ("since", "until") if key in told}
    return Action(told["text"], **bounds)


def _cc(told: Any) -> ComputeCapability:
    major, _, minor = (told if isinstance(told, str) else f"{told:.1f}").partition(".")
    return int(major), int(minor or 0)


def _ill_formed(row: _Row) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Where a rule is not as the schema has it, and what is wrong there."""
    from jsonschema import Draft202012Validator

    one = {"$ref": "#/$defs/rule", "$defs": schema()["$defs"]}
    for error in Draft202012Validator(one).iter_errors(row.told):
        for cause in _causes(error):
            path = tuple(cause.absolute_path)
            yield path, _told(cause, path)


def _causes(error: Any) -> list[Any]:
    """What is wrong; of an action, in the one of its two forms that was meant."""
    if error.validator != "oneOf":
        return [error]
    meant = 1 if isinstance(error.instance, dict) else 0
    return [cause for cause in error.context if cause.schema_path[0] == meant]


def _told(error: Any, path: tuple[str | int, ...]) -> str:
    where = ".".join(str(part) for part in path) or "a rule"
    given = repr(error.instance)[:80]
    match error.validator:
        case "additionalProperties":
            allowed = list(error.schema["properties"])
            unknown = [key for key in error.instance if key not in allowed]
            return "; ".join(f"no key {key!r}{_meant(key, allowed)}" for key in unknown)
        case "enum":
            values = [str(value) for value in error.validator_value]
            nearest = _nearest(str(error.instance), values)
            return f"{where}: {given} is none of {', '.join(values)}{nearest}"
        case "required":
            return f"{where}: no {error.message.split()[0].strip(chr(39))}"
        case "minItems" | "minLength" | "minProperties":
            return f"{where}: empty"
        case "type":
            kinds = error.validator_value
            wanted = " or ".join([kinds] if isinstance(kinds, str) else kinds)
            return f"{where}: {given} where {_KINDS.get(wanted, wanted)} belongs"
    about = error.schema.get("description", "")
    return f"{where}: {given} is not as it must be{f' ({about})' if about else ''}"


def _unknown_names(row: _Row) -> Iterator[Fault]:
    """Faults of the expressions, resources and quantities that a well-formed rule names."""
    texts: list[tuple[tuple[str | int, ...], str]] = [
        (("when", at), str(text)) for at, text in enumerate(row.told.get("when", ()))
    ]
    changed = [
        (part, key, str(text))
        for part in ("relieves", "takes")
        for key, text in row.told.get(part, {}).items()
    ]
    texts += [((part, key), text) for part, key, text in changed]
    if _TIME in row.told:
        texts.append(((_TIME,), str(row.told[_TIME])))
    names, resources = _vocabulary(row)
    for path, text in texts:
        try:
            expression = parse(text)
        except ValueError as error:
            yield row.fault(path, str(error))
            continue
        if path[0] == "when" and not expression.is_condition:
            yield row.fault(path, f"{text[:80]!r} is no condition: compare it with something")
        yield from _strangers(row, path, expression.names, "quantity", names)
    for part, key, _ in changed:
        yield from _strangers(row, (part, key), [key], "resource", resources)
    for at, name in enumerate(row.told.get("evidence", ())):
        yield from _strangers(row, ("evidence", at), [name], "quantity", names)
    valid = [*catalog().lines, *AWAITED, *COUNTED]
    yield from _strangers(row, ("blame",), _blamed(row.told), "line quantity", valid)
    yield from _mismatches(row)
    yield from _out_of_place(row)


def _mismatches(row: _Row) -> Iterator[Fault]:
    """Faults of the samples that a rule selects, and of naming them without selecting any."""
    blocks = row.told.get("match", ())
    reasons = [name.removeprefix(SAMPLES) for name in catalog().lines if name.startswith(SAMPLES)]
    for at, block in enumerate(blocks):
        path = ("match", at, "stall")
        yield from _strangers(row, path, block.get("stall", ()), "reason to stall", reasons)
    if not blocks and (named := set(_MATCHED).intersection(_read(row))):
        yield row.fault((), f"{min(named)!r} stands for what `match` selects, and there is none")


def _read(row: _Row) -> tuple[str, ...]:
    """The names that a rule's expressions and evidence read, as far as those are right."""
    texts = [str(text) for text in row.told.get("when", ())]
    for part in ("relieves", "takes"):
        texts += [str(text) for text in row.told.get(part, {}).values()]
    texts += [str(row.told[_TIME])] if _TIME in row.told else []
    names = list(row.told.get("evidence", ()))
    for text in texts:
        with suppress(ValueError):
            names += parse(text).names
    return tuple(names)


def _out_of_place(row: _Row) -> Iterator[Fault]:
    """Faults of parts that a rule about a timeline can't have."""
    if _is_about_timeline(row):
        for part in _OF_KERNELS:
            if part in row.told:
                yield row.fault((part,), f"{part!r} is for rules about kernels, not a timeline")


def _is_about_timeline(row: _Row) -> bool:
    return bool(row.told.get("about") == "timeline")


def _strangers(
    row: _Row, path: tuple[str | int, ...], names: Iterable[str], kind: str, known: Iterable[str]
) -> Iterator[Fault]:
    valid = list(known)
    for name in names:
        if name not in valid:
            yield row.fault(path, f"{name!r} is no {kind}{_meant(name, valid)}")


_LISTED = 40
"""Names that a line lists at most: all keys of a rule, all resources and stall reasons, not the
hundreds of quantities."""


def _meant(name: str, known: Sequence[str]) -> str:
    """The nearest of the right names; all of them, as far as they go on a line, without one."""
    nearest = _nearest(name, known)
    if nearest or not known:
        return nearest
    return f"; use {', '.join(known)}" if len(known) <= _LISTED else "; see `profkit metrics`"


def _nearest(name: str, known: Sequence[str]) -> str:
    meant = did_you_mean(name, known, alike=0.5)
    return meant and f"; {meant}"


def _vocabulary(row: _Row) -> tuple[list[str], list[str]]:
    """What a rule's expressions may name, and the resources that it may relieve."""
    if _is_about_timeline(row):
        return list(region.QUANTITIES), list(region.PARTS)
    return [*catalog().quantities, *CONTEXT], list(RESOURCES)
