"""Claimed figures of a file: rows of numbers, and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.audit.claim_reading import SECONDS
from profkit.audit.claim_text import (
    DTYPES,
    VERSION,
    Side,
    context,
    time_unit,
    understood,
)
from profkit.audit.printed_numbers import (
    NUMBER,
    Commented,
    Figure,
    Printed,
    as_printed,
    read_printed,
)
from profkit.core.errors import BadInput

if TYPE_CHECKING:
    from profkit.audit.claim_relations import Change, Product, Share

SHAPE = ("batch", "heads", "length", "dim")
PATHS = ("tensor", "vector")
PEAKS_OF = ("datasheet", "held", "measured")
BOUNDS = ("compute", "memory")


@dataclass(frozen=True)
class Claim:
    """What is claimed in one place; what it leaves open is None or empty. Quantities in SI units.

    `where` is the place in the file, `study` that of what it belongs to: claims of a study may
    speak of its rows. `gpus` are names as written, the likeliest first. `time` is a median with its
    interval from `low` to `high`; `flop` and `bytes` are those of one call, for attention those of
    its shape (each input read once, the output written once); `operation` is attention unless it
    says otherwise. `peak_of` says what the peaks are of: the datasheet, the clock that was held, or
    a measurement; `held_peak` and `held_share` are of the clock that was held, for claims that have
    both. `cache` is `warm` where a call found its inputs in L2. In a sentence, `lower_end` and
    `upper_end` are called ends of an interval, `apart` says that so many intervals do not overlap
    (0: no number), `sides` are compared, `matrices` are the sizes M, N, K of a product, `devices`
    is how many GPUs the figures are of together (0: several), `clock` the SM clock (Hz),
    `accumulate` the precision of the sums. `l2_rate`, `shared_rate` and `link_rate` are B/s that
    DRAM does not bound; `registers` are those of a thread, `threads` and `shared` (bytes) those
    of a block, `resident_blocks`, `resident_warps`, `resident_threads` those on an SM.
    `token_limit` is called a bound of tokens/s. In a record, `name` is that of a cell, `of` are
    those that a figure was made of, in the order of the quotient; `measure` repeats the field
    `measure_of` of its cell; `deviation` is the standard deviation over the mean, `outer_ends` are
    ends of other intervals of the time, low and high in turn. `unread` are numbers that nothing
    could be made of.
    """

    where: str = ""
    text: str = ""
    study: str = ""
    gpus: tuple[str, ...] = ()
    dtype: str = ""
    path: str = ""
    operation: str = ""
    batch: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    length: int | None = None
    dim: int | None = None
    causal: bool | None = None
    backward: bool | None = None
    cache: str = ""
    n: int | None = None
    time: Figure | None = None
    low: Figure | None = None
    high: Figure | None = None
    flop: Figure | None = None
    bytes: Figure | None = None
    intensity: Figure | None = None
    flop_rate: Figure | None = None
    byte_rate: Figure | None = None
    flop_share: Figure | None = None
    byte_share: Figure | None = None
    share: Figure | None = None
    flop_peak: Figure | None = None
    byte_peak: Figure | None = None
    held_peak: Figure | None = None
    held_share: Figure | None = None
    peak_of: str = ""
    ridge: Figure | None = None
    bound: str = ""
    baseline: Figure | None = None
    speedup: Figure | None = None
    memory: str = ""
    lower_end: Figure | None = None
    upper_end: Figure | None = None
    peak_ratio: Figure | None = None
    advantage: Figure | None = None
    sides: tuple[Side, ...] = ()
    flop_rate_low: Figure | None = None
    flop_rate_high: Figure | None = None
    held_clock: Figure | None = None
    cycles: Figure | None = None
    factor: Figure | None = None
    time_ratio: Figure | None = None
    flop_ratio: Figure | None = None
    exponent: Figure | None = None
    flop_exponent: Figure | None = None
    ratio_low: Figure | None = None
    ratio_high: Figure | None = None
    mean: Figure | None = None
    deviation: Figure | None = None
    outer_ends: tuple[Figure, ...] = ()
    measure: Figure | None = None
    measure_of: str = ""
    name: str = ""
    of: tuple[str, ...] = ()
    matrices: tuple[int, ...] = ()
    devices: int | None = None
    clock: Figure | None = None
    accumulate: str = ""
    l2_rate: Figure | None = None
    shared_rate: Figure | None = None
    link_rate: Figure | None = None
    registers: Figure | None = None
    threads: Figure | None = None
    shared: Figure | None = None
    occupancy: Figure | None = None
    achieved_occupancy: Figure | None = None
    resident_blocks: Figure | None = None
    resident_warps: Figure | None = None
    resident_threads: Figure | None = None
    grid_blocks: Figure | None = None
    sms: Figure | None = None
    waves: Figure | None = None
    sm_counts: tuple[tuple[str, int], ...] = ()
    token_rate: Figure | None = None
    token_limit: Figure | None = None
    tokens: Figure | None = None
    flop_per_token: Figure | None = None
    bytes_per_token: Figure | None = None
    changes: tuple[Change, ...] = ()
    parts: tuple[Share, ...] = ()
    products: tuple[Product, ...] = ()
    grid_dimensions: int | None = None
    apart: int | None = None
    unread: tuple[str, ...] = ()

    @property
    def figures(self) -> dict[str, Figure]:
        """The claimed quantities by field."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Figure)}

    @property
    def says_something(self) -> bool:
        """Whether anything is claimed that could be held against something."""
        statements = (
            self.bound, self.memory, self.sides, self.grid_dimensions, self.apart, self.sm_counts,
            self.changes, self.parts, self.products,
        )  # fmt: skip
        return bool(self.figures) or any(one not in (None, "", ()) for one in statements)


@dataclass(frozen=True)
class Claims:
    """A file's claims in its order, and the figures in it that nothing was made of, by place."""

    path: str
    claims: tuple[Claim, ...]
    unread: Mapping[str, str] = field(hash=False, default_factory=dict)


def read_claims(path: Path) -> Claims:
    """The claims of a YAML or JSON file; raises BadInput for one without, or that can't be read."""
    document = read_printed(path)
    try:
        root = _Place("", "", {}, record=_is_record(document))
        found = [_named(one, path.name) for one in _walk(document, root)]
    except BadInput as error:
        raise BadInput(f"{path}: {error.message}", error.remedy or "check the file") from None
    claims = tuple(claim for claim in found if isinstance(claim, Claim))
    if not any(claim.says_something for claim in claims):
        raise BadInput(f"{path}: holds no claims", "profkit audit --help says what it takes")
    return Claims(str(path), claims, dict(one for one in found if not isinstance(one, Claim)))


def _is_record(document: Any) -> bool:
    """Whether a program wrote it: it says by which schema. Its texts are names and settings."""
    items = document.items if isinstance(document, Commented) else {}
    return any(isinstance(items.get(key), str) for key in ("schema", "$schema"))


def _named(found: _Found, name: str) -> _Found:
    """What stands at the root has the file's name for its place."""
    if isinstance(found, Claim):
        return found if found.where else replace(found, where=name)
    return (found[0] or name, found[1])


_NAMES = {
    "B": "batch", "batch": "batch", "batch_size": "batch",
    "H": "heads", "heads": "heads", "num_heads": "heads",
    "Hkv": "kv_heads", "kv_heads": "kv_heads",
    "S": "length", "seq": "length", "seq_len": "length", "length": "length",
    "D": "dim", "dim": "dim", "head_dim": "dim",
    "n": "n", "N": "n", "samples": "n",
}  # fmt: skip
_QUANTITIES: Mapping[str, tuple[str, float, str]] = {
    "flop": ("flop", 1.0, "FLOP"),
    "gflop": ("flop", 1e9, "GFLOP"),
    "tflop": ("flop", 1e12, "TFLOP"),
    "bytes": ("bytes", 1.0, "B"),
    "intensity": ("intensity", 1.0, "FLOP/B"),
    "arithmetic_intensity": ("intensity", 1.0, "FLOP/B"),
    "ai": ("intensity", 1.0, "FLOP/B"),
    "flop_rate": ("flop_rate", 1.0, "FLOP/s"),
    "gflops": ("flop_rate", 1e9, "GFLOP/s"),
    "tflops": ("flop_rate", 1e12, "TFLOP/s"),
    "byte_rate": ("byte_rate", 1.0, "B/s"),
    "gbps": ("byte_rate", 1e9, "GB/s"),
    "tbps": ("byte_rate", 1e12, "TB/s"),
    "bandwidth": ("byte_rate", 1.0, "B/s"),
    "seconds": ("time", 1.0, "s"),
    "percent_of_peak": ("share", 0.01, "%"),
    "percent_of_compute_peak": ("flop_share", 0.01, "%"),
    "percent_of_bandwidth_peak": ("byte_share", 0.01, "%"),
    "compute_peak_gflops": ("flop_peak", 1e9, "GFLOP/s"),
    "compute_peak_tflops": ("flop_peak", 1e12, "TFLOP/s"),
    "bandwidth_peak_gbps": ("byte_peak", 1e9, "GB/s"),
    "bandwidth_peak_tbps": ("byte_peak", 1e12, "TB/s"),
    "datasheet_peak": ("flop_peak", 1.0, "FLOP/s"),
    "share_of_datasheet": ("flop_share", 1.0, ""),
    "held_peak": ("held_peak", 1.0, "FLOP/s"),
    "share_of_held": ("held_share", 1.0, ""),
    "dram_peak": ("byte_peak", 1.0, "B/s"),
    "share_of_dram": ("byte_share", 1.0, ""),
    "ridge": ("ridge", 1.0, "FLOP/B"),
    "flop_rate_low": ("flop_rate_low", 1.0, "FLOP/s"),
    "flop_rate_high": ("flop_rate_high", 1.0, "FLOP/s"),
    "tokens_per_second": ("token_rate", 1.0, "tokens/s"),
    "sm_clock": ("held_clock", 1.0, "Hz"),
    "cycles": ("cycles", 1.0, "cycles"),
    "factor": ("factor", 1.0, "x"),
    "time_ratio": ("time_ratio", 1.0, "x"),
    "flop_ratio": ("flop_ratio", 1.0, "x"),
    "exponent": ("exponent", 1.0, ""),
    "flop_exponent": ("flop_exponent", 1.0, ""),
    "speedup": ("speedup", 1.0, "x"),
    "peak_ratio": ("peak_ratio", 1.0, "x"),
}
_RATIO_NAMES = {key for key, (_, _, unit) in _QUANTITIES.items() if unit == "x"}
_RATIO = re.compile(rf"({NUMBER})\s*[x×](?:\s*(?:faster|speed-?up|as fast))?", re.I)
_TIMES = {"median": "time", "time": "time", "latency": "time", "baseline": "baseline"}
_INTERVALS = ("ci", "interval")
_WORDS: Mapping[str, Sequence[str]] = {
    "path": PATHS, "cache": ("warm", "cold"), "bound": BOUNDS, "memory": (),
    "peak_of": PEAKS_OF, "operation": (),
}  # fmt: skip
_FLAGS = ("causal", "backward")
_STATED = {"dtype", "regime", *_WORDS, *_FLAGS}
_NESTED = {"shape": "{}", "peak": "{}", "time": "{}", "percent_of_peak": "percent_of_{}_peak"}
_PEAK_KEYS = {
    "tflops": "compute_peak_tflops", "gflops": "compute_peak_gflops",
    "gbps": "bandwidth_peak_gbps", "tbps": "bandwidth_peak_tbps", "of": "peak_of",
}  # fmt: skip
_INHERITED = (
    "gpus", "dtype", "path", "operation", *SHAPE, "kv_heads", "causal", "backward", "cache",
    "peak_of",
)  # fmt: skip
# Keys of what tells things apart, and texts that are a quantity.
_LABELS = (
    "version", "versions", "name", "id", "uuid", "hash", "sha1", "sha256", "digest", "seed", "file",
)  # fmt: skip
_AMOUNT = re.compile(rf"[<>≤≥~≈]?[-+]?{NUMBER}[A-Za-zµμ%×/]+")


@dataclass(frozen=True)
class _Place:
    """Where in a document one is, and what the keys and comments above say of all below.

    A `label` is the place of a version, a name or a hash. `record` holds for all of a document that
    a program wrote.
    """

    path: str
    study: str
    known: Mapping[str, Any]
    unit: str = ""
    columns: tuple[str, ...] = ()
    label: bool = False
    record: bool = False

    def below(self, key: str, comment: str = "") -> _Place:
        """The place of a key's value: its name and comment may tell GPU, dtype, shape, unit."""
        words = key.replace("_", " ")
        known = {**self.known, **_from_key(words)}
        told = context(comment)
        known |= told | {"gpus": (*_from_key(words).get("gpus", ()), *told.get("gpus", ()))}
        known["gpus"] = (*known["gpus"], *self.known.get("gpus", ()))
        columns = tuple(part.strip() for part in comment.split(",")) if "," in comment else ()
        unit = _unit_of(words) or time_unit(comment) or self.unit
        path = f"{self.path}.{key}" if self.path else key
        own = words.lower().split()[-1:]
        label = (own and own[0] in _LABELS) or self.path.rpartition(".")[2] == "versions"
        return replace(self, path=path, known=known, unit=unit, columns=columns, label=bool(label))

    def at(self, index: int) -> _Place:
        return replace(self, path=f"{self.path}[{index}]")


def _from_key(words: str) -> dict[str, Any]:
    """GPU, dtype and shape in a key: `h100 sxm fp16`, `fa3 d128 causal`, `backends s512 ms`."""
    gpu = re.sub(
        r"\b(?!fa|fp|bf|tf|int|[ds]\d)(?:rtx )?[a-z]{1,2}\d{1,4}[a-z]?\b(?: (?:sxm|pcie|nvl)\b)?",
        lambda match: match.group().upper().replace("PCIE", "PCIe"),
        words.lower(),
    )
    known = context(gpu)
    for letter, name in (("b", "batch"), ("s", "length"), ("d", "dim")):
        found = re.findall(rf"(?<![a-z0-9]){letter}(\d+)(?![a-z0-9])", words.lower())
        size = int(found[0]) if len(found) == 1 else 0
        # A batch is a power of two; b200 is a GPU.
        if size and (letter != "b" or size & (size - 1) == 0):
            known[name] = size
    heads = re.search(r"\bgqa(\d+) (\d+)\b", words.lower())
    if heads:
        known |= {"heads": int(heads.group(1)), "kv_heads": int(heads.group(2))}
    if re.search(r"\bcausal\b", words.lower()):
        known["causal"] = True
    return known


def _unit_of(words: str) -> str:
    """The unit that a key ends with or holds: `ms`, `tflops`, `gbps`."""
    if re.search(r"\b(?:ratio|exponent)$", words.lower()):
        return ""  # of FLOP, but none
    told = words.lower().replace("flop rate", "")  # the end of a rate's interval is no work
    found = [word for word in told.split() if word in SECONDS or word in _QUANTITIES]
    return found[-1] if found else ""


_LARGEST_SIZE = 10**9

_Found = Claim | tuple[str, str]


def _walk(value: Any, place: _Place) -> Iterator[_Found]:
    """All claims below a value, and every other value with its place."""
    if isinstance(value, Commented):
        yield from _mapping(value, place)
    elif isinstance(value, list):
        yield from _list(value, place)
    elif isinstance(value, Printed):
        yield from _bare(value, place)
    elif isinstance(value, str):
        yield from _text(value, place)
    elif value is not None and not place.record:
        yield place.path, str(value).lower()


def _text(value: str, place: _Place) -> Iterator[_Found]:
    """A sentence, or a word: listed where it may claim something."""
    if (ratio := _ratio(place.unit, value)) is not None:
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
    if key in _NAMES or key.lower() in _STATED or _unit_of(key.replace("_", " ")):
        return True
    if _AMOUNT.fullmatch(word) or Claim(**understood(word)[0]).says_something:
        return True
    return not place.record and as_printed(word) is not None


def _mapping(value: Commented, place: _Place) -> Iterator[_Found]:
    items = dict(_spread(value))
    own, rest = _own_fields(items, place)
    shared = {name: one for name, one in own.items() if name in _INHERITED}
    claimed = {name: one for name, one in own.items() if name not in _INHERITED and name != "n"}
    inner = replace(place, known={**place.known, **shared})
    texts = [key for key in ("text", "claim") if isinstance(rest.get(key), str)]
    for key in texts:
        at = replace(inner, path=f"{place.path}.{key}".lstrip("."))
        yield from _sentence(rest.pop(key), at)
    if claimed:
        keys = [key for key in items if not place.path and _claims_figure(key, items[key], place)]
        where = keys[0] if len(keys) == 1 else place.path
        yield _claim({**inner.known, **own}, replace(place, path=where))
    for key, one in rest.items():
        below = inner.below(key, value.comments.get(key, ""))
        deeper = isinstance(one, (Commented, list))
        numbered = _length_key(key, value, one)
        study = place.path if deeper else place.study
        known = {**below.known, **numbered}
        yield from _walk(one, replace(below, study=study, known=known))


def _length_key(key: str, value: Commented, one: Any) -> Mapping[str, Any]:
    """Keys that are all whole numbers are sequence lengths: `{128: 13.7, 256: 27.8}`."""
    if isinstance(one, Printed) and all(
        re.fullmatch(r"[1-9]\d{0,6}", name) for name in value.items
    ):
        return {"length": int(key)}
    return {}


def _spread(value: Commented) -> Iterator[tuple[str, Any]]:
    """A mapping's items, those of `shape`, `peak`, `time` and `percent_of_peak` beside them."""
    for key, one in value.items.items():
        if key == "gpu" and isinstance(one, Commented) and isinstance(one.items.get("name"), str):
            yield key, one.items["name"]  # what else is told of it is measured, not claimed
            continue
        if key not in _NESTED or not isinstance(one, Commented):
            yield key, one
            continue
        unit = one.items.get("unit", "s")
        for name, inner in one.items.items():
            if key == "time" and name == "unit":
                continue
            if key == "time":
                yield f"{name}_{unit}", inner
            elif key == "peak":
                yield _PEAK_KEYS.get(name, f"peak_{name}"), inner
            else:
                yield _NESTED[key].format(name), inner


def _own_fields(items: Mapping[str, Any], place: _Place) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a claim among a mapping's items, and the other items."""
    own: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in items.items():
        found = _field(key, value, place)
        if key in ("low", "high") and "seconds" in items:
            found = _figure_field(key, value, 1.0, "s", f"{place.path}.{key}".lstrip("."))
        elif key in ("low", "high") and "speedup" in items:
            path = f"{place.path}.{key}".lstrip(".")
            found = _figure_field(f"ratio_{key}", value, 1.0, "x", path)
        if found is None:
            rest[key] = value
        else:
            own |= found
    if place.record:
        own |= _record_fields(items, rest, place)
    return own, rest


_REPEATED = {"seconds": "time", "flop_rate": "flop_rate"}


def _record_fields(items: Mapping[str, Any], rest: dict[str, Any], place: _Place) -> dict[str, Any]:
    """What only records have: means of a cell, and of which cells a figure was made."""
    own: dict[str, Any] = {}

    def take(key: str, name: str, unit: str) -> None:
        found = _figure_field(name, rest.get(key), 1.0, unit, f"{place.path}.{key}")
        if found:
            own.update(found)
            rest.pop(key)

    if isinstance(items.get("seconds"), Printed) and isinstance(items.get("id"), str):
        own["name"] = str(items["id"])
        take("mean", "mean", "s")
        take("cv", "deviation", "")
        own["outer_ends"] = _outer_ends(rest, place)
    elif items.get("by") in _REPEATED and isinstance(items.get("id"), str):
        own |= {"measure_of": _REPEATED[str(items["by"])], "of": (str(items["id"]),)}
        take("measure", "measure", "")
    elif "time_ratio" in items:
        own["of"] = tuple(str(items.get(key, "")) for key in ("to", "from"))
    return own


def _outer_ends(rest: dict[str, Any], place: _Place) -> tuple[Figure, ...]:
    ends: list[Figure] = []
    for stem in ("blocks", "run"):
        keys = (f"{stem}_low", f"{stem}_high")
        found = [_figure_field(key, rest.get(key), 1.0, "s", f"{place.path}.{key}") for key in keys]
        figures = [one[key] for one, key in zip(found, keys, strict=True) if one]
        if len(figures) == len(keys):
            ends += figures
            for key in keys:
                rest.pop(key)
    return tuple(ends)


def _claims_figure(key: str, value: Any, place: _Place) -> bool:
    """Whether a key's value is claimed, and no more than what the claim is of."""
    return bool(set(_field(key, value, place) or {}) - {*_INHERITED, "n"})


def _field(key: str, value: Any, place: _Place) -> dict[str, Any] | None:
    """What a key says of a claim; {} where its value is null, None for a key that says nothing."""
    path = f"{place.path}.{key}".lstrip(".")
    if (name := _NAMES.get(key)) and isinstance(value, Printed):
        return {name: _whole(value, path)}
    lower = key.lower()
    if isinstance(value, str) and (ratio := _ratio(lower, value)) is not None:
        return _quantity(lower, ratio, path)
    if isinstance(value, (bool, str)):
        return _word(lower, value)
    return _quantity(lower, value, path)


def _word(key: str, value: str | bool) -> dict[str, Any] | None:
    """A GPU, a dtype, a flag or a word of a known few; None for anything else."""
    if isinstance(value, bool):
        return {key: value} if key in _FLAGS else None
    if key == "gpu":
        return {"gpus": (value,)}
    if key == "dtype":
        return {"dtype": DTYPES[value.lower()]} if value.lower() in DTYPES else None
    if key == "regime":
        key = "bound"
    known = _WORDS.get(key)
    return {key: value} if known is not None and (value in known or not known) else None


def _ratio(key: str, text: str) -> Printed | None:
    """The number of `3x`, `3.0 ×` or `3x faster` where the key is a ratio's; None for another."""
    match = _RATIO.fullmatch(text.strip()) if key in _RATIO_NAMES else None
    return as_printed(match.group(1)) if match else None


def _quantity(key: str, value: Any, path: str) -> dict[str, Any] | None:
    if key in _QUANTITIES:
        name, scale, unit = _QUANTITIES[key]
        return _figure_field(name, value, scale, unit, path)
    stem, _, unit = key.rpartition("_")
    if unit not in SECONDS:
        return None
    if stem in _TIMES:
        return _figure_field(_TIMES[stem], value, SECONDS[unit], unit, path)
    if stem in _INTERVALS and isinstance(value, list) and len(value) == 2:
        low, high = (
            _figure_field(end, one, SECONDS[unit], unit, path)
            for end, one in zip(("low", "high"), value, strict=True)
        )
        return None if low is None or high is None else low | high
    return {} if stem in _INTERVALS and value is None else None


def _figure_field(
    name: str, value: Any, scale: float, unit: str, path: str
) -> dict[str, Any] | None:
    if value is None:
        return {}
    if not isinstance(value, Printed):
        return None
    try:
        return {name: value.figure(scale, unit)}
    except ValueError:
        raise BadInput(f"{path} is {value.text}, not a positive number") from None


def _whole(value: Printed, path: str) -> int:
    if not 1 <= value.value <= _LARGEST_SIZE or value.value != int(value.value):
        raise BadInput(f"{path} is {value.text}, not a whole number from 1 to {_LARGEST_SIZE:g}")
    return int(value.value)


def _list(values: list[Any], place: _Place) -> Iterator[_Found]:
    for at, value in enumerate(values):
        if isinstance(value, list) and len(value) == len(place.columns):
            yield from _row(dict(zip(place.columns, value, strict=True)), place.at(at))
        else:
            yield from _walk(value, place.at(at))


def _row(items: Mapping[str, Any], place: _Place) -> Iterator[_Found]:
    """A row under named columns: one claim, or one a column that only its name tells apart."""
    own, rest = _own_fields(items, place)
    if set(own) - {*_INHERITED, "n"}:
        yield _claim({**place.known, **own}, place)
    inner = replace(place, known={**place.known, **own})
    for key, value in rest.items():
        yield from _walk(value, inner.below(key))


def _bare(value: Printed, place: _Place) -> Iterator[_Found]:
    """A number that its key's unit names; another is listed, unless it is a version or a seed."""
    stem = "time_" if place.unit in SECONDS else ""
    found = _quantity(f"{stem}{place.unit}", value, place.path) if place.unit else None
    if found:
        yield _claim({**place.known, **found}, place)
    elif not place.label:
        yield place.path, value.text


def _sentence(text: str, place: _Place) -> Iterator[Claim]:
    """What a sentence claims; one that says nothing is kept where a person wrote it as a claim."""
    found, unread = understood(text)
    known = {name: value for name, value in place.known.items() if name in ("gpus", "dtype")}
    if "gpus" in found:
        found["gpus"] = (*found["gpus"], *known.get("gpus", ()))
    claim = _claim({**known, **found}, place, text=text, unread=unread)
    versions = not unread and VERSION.search(text)
    if claim.says_something or not (place.label or place.record or versions):
        yield claim


def _claim(
    values: Mapping[str, Any], place: _Place, text: str = "", unread: tuple[str, ...] = ()
) -> Claim:
    names = {one.name for one in fields(Claim)}
    known = {name: value for name, value in values.items() if name in names}
    return Claim(where=place.path, text=text, study=place.study, unread=unread, **known)
