"""Claimed figures of a file: rows of numbers, and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, structs

from profkit.audit import printed_numbers as printed
from profkit.audit.claim import NOTHING, QUANTITIES, SHAPE, Claim
from profkit.audit.claim_text import context, time_unit, understood
from profkit.audit.phrases import VOCABULARY, WORDS, scale_of
from profkit.core.errors import BadInput, inside


@dataclass(frozen=True)
class Claims:
    """A file's claims in its order, and the figures in it that nothing was made of, by place."""

    path: str
    claims: tuple[Claim, ...]
    unread: Mapping[str, str] = field(hash=False, default_factory=dict)


_Entry = Claim | tuple[str, str]
_Items: TypeAlias = Mapping[str, printed.Node]


def read_claims(path: Path) -> Claims:
    """The claims of a YAML or JSON file; raises BadInput for one without, or that can't be read."""
    document = printed.read_printed(path)
    with inside(path):
        # A program wrote what says by which schema: its texts are names and settings.
        items = document.items if isinstance(document, printed.Commented) else {}
        record = any(isinstance(items.get(key), str) for key in ("schema", "$schema"))
        entries = list(_walk(document, _Place("", "", record=record)))
    # What stands at the root has the file's name for its place.
    claims = tuple(
        replace(entry, where=entry.where or path.name)
        for entry in entries
        if isinstance(entry, Claim)
    )
    if not any(claim.says_something for claim in claims):
        is_empty = not document or document == printed.Commented({})
        why = "no claims: the file is empty" if is_empty else "no claims"
        raise BadInput(f"{path}: {why}", "see `profkit audit --help`")
    unread = (entry for entry in entries if not isinstance(entry, Claim))
    return Claims(str(path), claims, {place or path.name: value for place, value in unread})


_EXPONENTS = {"exponent", "flop_exponent"}
# The quantity of a key, and the unit of what it is given.
_QUANTITIES = {
    key: (name, unit)
    for name, quantity in QUANTITIES.items()
    for key, unit in quantity.keys.items()
}
_RATIO = re.compile(rf"({printed.NUMBER})\s*[x×](?:\s*(?:faster|speed-?up|as fast))?", re.I)
_INTERVALS = ("ci", "interval")
_FLAGS = ("causal", "backward")
_STATED = {"dtype", "regime", *VOCABULARY.words, *_FLAGS}
_INHERITED = (
    "gpus", "dtype", "path", "operation", *SHAPE, "kv_heads", "causal", "backward", "cache",
    "peak_of",
)  # fmt: skip
_AMOUNT = re.compile(rf"[<>≤≥~≈]?[-+]?{printed.NUMBER}[A-Za-zµμ%×/]+")
_LARGEST_SIZE = 10**9  # chosen: no batch or sequence is longer; a typo is


class _Place(Struct, frozen=True):
    """Where in a document one is, and what the keys and comments above say of all below.

    A `label` is the place of a version, a name or a hash. `record` holds for all of a document that
    a program wrote.
    """

    path: str
    study: str
    known: Claim = NOTHING
    unit: str = ""
    columns: tuple[str, ...] = ()
    label: bool = False
    record: bool = False

    def path_of(self, key: str) -> str:
        """The path of a key."""
        return f"{self.path}.{key}" if self.path else key

    def below(self, key: str, comment: str = "") -> _Place:
        """The place of a key's value: its name and comment may tell GPU, dtype, shape, unit."""
        words = key.replace("_", " ")
        by_key, by_comment = _from_key(words), context(comment)
        known = by_comment.over(by_key).over(self.known)
        return structs.replace(
            self,
            path=self.path_of(key),
            known=replace(known, gpus=by_key.gpus + by_comment.gpus + self.known.gpus),
            unit=_unit_of(words) or time_unit(comment) or self.unit,
            columns=tuple(map(str.strip, comment.split(","))) if "," in comment else (),
            label=not {*words.lower().split()[-1:]}.isdisjoint(VOCABULARY.labels)
            or self.path.rpartition(".")[2] == "versions",
        )

    def item(self, index: int) -> _Place:
        return structs.replace(self, path=f"{self.path}[{index}]")

    def knowing(self, known: Claim) -> _Place:
        return structs.replace(self, known=known.over(self.known))


def _from_key(words: str) -> Claim:
    """GPU, dtype and shape in a key: `h100 sxm fp16`, `fa3 d128 causal`, `backends s512 ms`."""
    words = words.lower()
    gpu = re.sub(
        r"\b(?!fa|fp|bf|tf|int|[ds]\d)(?:rtx )?[a-z]{1,2}\d{1,4}[a-z]?\b(?: (?:sxm|pcie|nvl)\b)?",
        lambda match: match.group().upper().replace("PCIE", "PCIe"),
        words,
    )
    known = context(gpu)
    for letter, name in (("b", "batch"), ("s", "length"), ("d", "dim")):
        sizes = re.findall(rf"(?<![a-z0-9]){letter}(\d+)(?![a-z0-9])", words)
        size = int(sizes[0]) if len(sizes) == 1 else 0
        # A batch is a power of two; b200 is a GPU.
        if size and (letter != "b" or size & (size - 1) == 0):
            known = known.stating(**{name: size})
    if heads := re.search(r"\bgqa(\d+) (\d+)\b", words):
        known = replace(known, heads=int(heads.group(1)), kv_heads=int(heads.group(2)))
    return replace(known, causal=True) if re.search(r"\bcausal\b", words) else known


def _unit_of(words: str) -> str:
    """The unit that a key ends with or holds: `ms`, `tflops`, `gbps`."""
    if re.search(r"\b(?:ratio|exponent)$", words.lower()):
        return ""  # of FLOP, but none
    rest = words.lower().replace("flop rate", "")  # the end of a rate's interval is no work
    units = [word for word in rest.split() if word in VOCABULARY.seconds or word in _QUANTITIES]
    return units[-1] if units else ""


def _walk(value: printed.Node, place: _Place) -> Iterator[_Entry]:
    """All claims below a value, and every other value with its place."""
    if isinstance(value, printed.Commented):
        yield from _mapping(value, place)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, list) and len(item) == len(place.columns):
                yield from _row(dict(zip(place.columns, item, strict=True)), place.item(index))
            else:
                yield from _walk(item, place.item(index))
    elif isinstance(value, printed.Printed):
        yield from _bare(value, place)
    elif isinstance(value, str):
        yield from _text(value, place)
    elif value is not None and not place.record:
        yield place.path, str(value).lower()


def _text(value: str, place: _Place) -> Iterator[_Entry]:
    """A sentence, or a word: listed where it may claim something."""
    if ratio := _ratio(place.unit, value):
        yield from _bare(ratio, place)
    elif " " in value.strip():
        yield from _sentence(value, place)
    elif _may_claim(value, place):
        yield place.path, value


def _may_claim(word: str, place: _Place) -> bool:
    """Whether a word is a figure or a statement, not a version, a hash or a name.

    Whatever a known key is given was meant to say something.
    """
    key = place.path.rpartition(".")[2]
    is_file = key == "path" and re.search(r"[/\\.]", word)
    if place.label or is_file or not word.strip():
        return False
    if key in VOCABULARY.sizes or key.lower() in _STATED or _unit_of(key.replace("_", " ")):
        return True
    if _AMOUNT.fullmatch(word) or understood(word).says_something:
        return True
    return not place.record and printed.as_printed(word) is not None


def _mapping(value: printed.Commented, place: _Place) -> Iterator[_Entry]:
    items = dict(_spread(value))
    own, rest = _own_fields(items, place)
    inner = place.knowing(own.only(*_INHERITED))
    for key in ("text", "claim"):
        if isinstance(text := rest.get(key), str):
            del rest[key]
            yield from _sentence(text, structs.replace(inner, path=place.path_of(key)))
    if _claimed(own):
        keys = [
            key for key, item in items.items() if _claimed(_field(key, item, {}, place) or NOTHING)
        ]
        where = keys[0] if len(keys) == 1 and not place.path else place.path
        yield _claim(own, structs.replace(inner, path=where))
    # Keys that are all whole numbers are sequence lengths: `{128: 13.7, 256: 27.8}`.
    lengths = all(re.fullmatch(r"[1-9]\d{0,6}", name) for name in value.items)
    for key, item in rest.items():
        below = inner.below(key, value.comments.get(key, ""))
        if isinstance(item, (printed.Commented, list)):
            below = structs.replace(below, study=place.path)
        elif lengths and isinstance(item, printed.Printed):
            below = below.knowing(Claim(length=int(key)))
        yield from _walk(item, below)


def _claimed(own: Claim) -> bool:
    """Whether something is claimed, and not only said what the claim is of."""
    return own != own.only(*_INHERITED, "n")


def _spread(value: printed.Commented) -> Iterator[tuple[str, printed.Node]]:
    """A mapping's items, those of `shape`, `peak`, `time` and `percent_of_peak` beside them."""
    for key, item in value.items.items():
        inner: _Items = item.items if isinstance(item, printed.Commented) else {}
        if key == "gpu" and isinstance(inner.get("name"), str):
            yield key, inner["name"]  # what else is told of it is measured, not claimed
        elif key in VOCABULARY.nested and isinstance(item, printed.Commented):
            unit = inner.get("unit", "s")
            for name, each in inner.items():
                if (key, name) != ("time", "unit"):
                    beside = VOCABULARY.nested[key].format(name, unit=unit)
                    yield VOCABULARY.peaks.get(beside, beside), each
        else:
            yield key, item


def _own_fields(items: _Items, place: _Place) -> tuple[Claim, dict[str, printed.Node]]:
    """What a mapping's items claim, and the other items."""
    own = NOTHING
    rest: dict[str, printed.Node] = {}
    for key, value in items.items():
        if (fields := _field(key, value, items, place)) is None:
            rest[key] = value
        else:
            own = fields.over(own)
    if place.record:
        own = _record_fields(rest, items, place).over(own)
    return own.with_kind_of_share, rest


_REPEATED = {"seconds": "time", "flop_rate": "flop_rate"}


def _record_fields(rest: dict[str, printed.Node], items: _Items, place: _Place) -> Claim:
    """What only records have: means of a cell, and of which cells a figure was made."""
    name, repeated = items.get("id"), items.get("by")
    if isinstance(items.get("seconds"), printed.Printed) and isinstance(name, str):
        ends: tuple[printed.Figure, ...] = ()
        for keys in (("blocks_low", "blocks_high"), ("run_low", "run_high")):
            if all(isinstance(rest.get(key), printed.Printed) for key in keys):
                figures = _taken(rest, place, {key: (key, "s") for key in keys})
                ends += tuple(figures.values())
        figures = _taken(rest, place, {"mean": ("mean", "s"), "cv": ("deviation", "")})
        return Claim(figures=figures, name=name, outer_ends=ends)
    if isinstance(repeated, str) and repeated in _REPEATED and isinstance(name, str):
        figures = _taken(rest, place, {"measure": ("measure", "")})
        return Claim(figures=figures, measure_of=_REPEATED[repeated], sources=(name,))
    if "time_ratio" in items:
        return Claim(sources=tuple(str(items.get(key, "")) for key in ("to", "from")))
    return NOTHING


def _taken(
    rest: dict[str, printed.Node], place: _Place, names: Mapping[str, tuple[str, str]]
) -> dict[str, printed.Figure]:
    """Figures out of the rest of a mapping."""
    figures = {}
    for key, (name, unit) in names.items():
        if isinstance(value := rest.get(key), printed.Printed):
            del rest[key]
            figures[name] = _figure(value, unit, place.path_of(key))
    return figures


def _field(key: str, value: printed.Node, items: _Items, place: _Place) -> Claim | None:
    """What a key says of a claim; nothing where its value is null, None for a key of another."""
    if key in VOCABULARY.sizes and isinstance(value, printed.Printed):
        return NOTHING.stating(**{VOCABULARY.sizes[key]: _whole(value, place.path_of(key))})
    if key in ("low", "high") and "seconds" in items:
        return _figures({key: value}, "s", place.path_of(key))
    if key in ("low", "high") and "speedup" in items:
        return _figures({f"ratio_{key}": value}, "x", place.path_of(key))
    lower = key.lower()
    ratio = _ratio(lower, value) if isinstance(value, str) else None
    if isinstance(value, (bool, str)) and not ratio:
        return _word(lower, value)
    return _quantity(lower, ratio or value, place.path_of(key))


def _word(key: str, value: str | bool) -> Claim | None:
    """A GPU, a dtype, a flag or a word of a known few; None for anything else."""
    if isinstance(value, bool):
        return NOTHING.stating(**{key: value}) if key in _FLAGS else None
    if key == "gpu":
        return Claim(gpus=(value,))
    if key == "dtype":
        dtype = VOCABULARY.dtypes.get(value.lower())
        return Claim(dtype=dtype) if dtype else None
    key = "bound" if key == "regime" else key
    words = VOCABULARY.words.get(key)
    known = words is not None and value in (words or (value,))
    return NOTHING.stating(**{key: value}) if known else None


def _ratio(key: str, text: str) -> printed.Printed | None:
    """The number of `3x`, `3.0 ×` or `3x faster` where the key is a ratio's; None for another."""
    match = _RATIO.fullmatch(text.strip()) if _QUANTITIES.get(key, "")[-1:] == ("x",) else None
    return printed.as_printed(match.group(1)) if match else None


def _quantity(key: str, value: printed.Node, path: str) -> Claim | None:
    if key in _QUANTITIES:
        name, unit = _QUANTITIES[key]
        if name in _EXPONENTS and isinstance(value, printed.Printed) and value.value <= 0:
            return NOTHING  # of what shrinks as it grows, nothing is checked
        return _figures({name: value}, unit, path)
    stem, _, unit = key.rpartition("_")
    if unit in VOCABULARY.seconds and stem in VOCABULARY.times:
        return _figures({VOCABULARY.times[stem]: value}, unit, path)
    if unit in VOCABULARY.seconds and stem in _INTERVALS:
        if isinstance(value, list) and len(value) == 2:
            return _figures({"low": value[0], "high": value[1]}, unit, path)
        return NOTHING if value is None else None
    return None


def _figures(values: _Items, unit: str, path: str) -> Claim | None:
    """Figures by name; without those that are null, None where one is no number."""
    figures = {}
    for name, value in values.items():
        if isinstance(value, printed.Printed):
            figures[name] = _figure(value, unit, path)
        elif value is not None:
            return None
    return Claim(figures=figures)


def _figure(value: printed.Printed, unit: str, path: str) -> printed.Figure:
    try:
        return value.figure(scale_of(unit), unit)
    except ValueError:
        raise BadInput(f"{path} is {value.text}, not a positive number") from None


def _whole(value: printed.Printed, path: str) -> int:
    if not 1 <= value.value <= _LARGEST_SIZE or value.value != int(value.value):
        raise BadInput(f"{path} is {value.text}, not a whole number from 1 to {_LARGEST_SIZE:g}")
    return int(value.value)


def _row(items: _Items, place: _Place) -> Iterator[_Entry]:
    """A row under named columns: one claim, or one a column that only its name tells apart."""
    own, rest = _own_fields(items, place)
    if _claimed(own):
        yield _claim(own, place)
    for key, value in rest.items():
        yield from _walk(value, place.knowing(own).below(key))


def _bare(value: printed.Printed, place: _Place) -> Iterator[_Entry]:
    """A number that its key's unit names; another is listed, unless it is a version or a seed."""
    stem = "time_" if place.unit in VOCABULARY.seconds else ""
    claim = _quantity(f"{stem}{place.unit}", value, place.path) if place.unit else None
    if claim and claim.figures:
        yield _claim(claim, place)
    elif not place.label:
        yield place.path, value.text


def _sentence(text: str, place: _Place) -> Iterator[Claim]:
    """What a sentence claims; one that says nothing is kept where a person wrote it as a claim."""
    claim, known = understood(text), place.known.only("gpus", "dtype")
    claim = replace(claim, gpus=claim.gpus + known.gpus, text=text)
    versions = not claim.unread and WORDS["version"].search(text)
    if claim.says_something or not (place.label or place.record or versions):
        yield _claim(claim, structs.replace(place, known=known))


def _claim(claim: Claim, place: _Place) -> Claim:
    return replace(claim.over(place.known), where=place.path, study=place.study)
