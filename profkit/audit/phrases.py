"""How sentences say figures: `phrases.yaml`, and a text while rules take numbers out of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from profkit.audit.claim import NOTHING, Claim
from profkit.audit.printed_numbers import NUMBER, Figure, as_printed
from profkit.core.errors import BadInput
from profkit.core.typed_file import Model, convert
from profkit.core.yaml_files import shipped_yaml


class Vocabulary(Model, frozen=True):
    """The words of `vocabulary.yaml`, which says what each table is."""

    sizes: dict[str, str]
    shape: dict[str, str]
    times: dict[str, str]
    dtypes: dict[str, str]
    words: dict[str, tuple[str, ...]]
    nested: dict[str, str]
    peaks: dict[str, str]
    labels: frozenset[str]
    prefixes: dict[str, float]
    seconds: dict[str, float]
    counts: dict[str, int]
    checks: dict[str, str]
    wrong: dict[str, dict[float, str]]


VOCABULARY = convert(shipped_yaml("profkit.audit", "vocabulary.yaml"), Vocabulary)
_PREFIX = re.compile(r"([kmgtp]i?)\s?(?:flop|b|ops|hz|tok)", re.I)

# How far back words may stand that say what a number is: half a line. Looking at the whole text
# from each of its numbers would take time by the square of its length.
NEAR = 160


def words_before(text: str, end: int) -> str:
    """The text shortly before a place."""
    return text[max(0, end - NEAR) : end]


def scale_of(unit: str) -> float:
    """What a unit as it is written is in SI units: 1e-3 of ms, 1e12 of TFLOP/s, 0.01 of %."""
    if prefix := _PREFIX.match(unit):
        return VOCABULARY.prefixes[prefix.group(1).lower()]
    return VOCABULARY.seconds.get(unit.lower(), 0.01 if unit == "%" else 1.0)


def figure_of(number: str, unit: str, scale: float | None = None) -> Figure | None:
    """The quantity of a number, or a word for one; None for what can be none."""
    try:
        value = as_printed(str(VOCABULARY.counts.get(number.lower(), number)))
        scale = scale_of(unit) if scale is None else scale
        return value.figure(scale, unit) if value else None
    except (ValueError, BadInput):
        return None


def groups_of(match: re.Match[str]) -> list[int]:
    """The groups that took part in a match."""
    return [index for index, text in enumerate(match.groups(), 1) if text is not None]


@dataclass
class Reading:
    """A text, what was understood of it, and what is left of it."""

    text: str
    left: str = ""
    claim: Claim = NOTHING
    several: set[str] = field(default_factory=set)
    also: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.left = self.text

    def take(self, match: re.Match[str], *groups: int) -> None:
        """Blank out what was understood, so that no later rule takes it again."""
        for group in groups or (0,):
            start, end = match.span(group)
            if start >= 0:
                self.left = self.left[:start] + "·" * (end - start) + self.left[end:]

    def put(self, name: str, value: Any) -> None:
        """Keep a value; two different ones of a name leave none."""
        before = self.claim.value(name)
        if before in (None, "", ()):
            self.state(**{name: value})
        elif before != value:
            self.several.add(name)
            self.also |= {figure.text for figure in (before, value) if isinstance(figure, Figure)}

    def state(self, **values: Any) -> None:
        """Keep values, whatever was kept of their names."""
        self.claim = self.claim.stating(**values)

    def take_figure(
        self, match: re.Match[str], name: str, group: int, unit: str, scale: float | None = None
    ) -> None:
        """Keep the number in a group of a match, and blank it out."""
        figure = figure_of(match.group(group), unit, scale)
        if figure is not None:
            self.put(name, figure)
            self.take(match, group)


_NEVER = "(?!)"


class Phrases(Model, frozen=True, kw_only=True):
    """Patterns whose first group is a figure of a quantity, and the second its unit if it has one.

    `like` are examples. `unit` is the unit's name where the text does not say, or says it in many
    ways. The words before a figure end in `after` and not in `unless_after`; the text does not hold
    `unless`. Most patterns are tried on what is
    left, some on the `whole` text.
    """

    quantity: str
    like: tuple[str, ...]
    patterns: tuple[str, ...]
    unit: str = ""
    after: str = ""
    unless_after: str = _NEVER
    unless: str = _NEVER
    whole: bool = False
    scale: float | None = None

    def __call__(self, reading: Reading) -> None:
        if re.search(self.unless, reading.text):
            return
        for pattern in self.patterns:
            for match in re.finditer(pattern, reading.text if self.whole else reading.left):
                before = words_before(reading.text, match.start())
                after = re.search(rf"{self.after}$", before)
                if after and not re.search(rf"{self.unless_after}$", before):
                    self._take(reading, match)

    def _take(self, reading: Reading, match: re.Match[str]) -> None:
        number, *units = groups_of(match)
        unit = match.group(units[0]) if units else self.unit
        scale = scale_of(unit) if self.scale is None else self.scale
        reading.take_figure(match, self.quantity, number, self.unit or unit, scale)


def _filled(pattern: str | list[str]) -> str:
    """A pattern with its parts; any item of a list."""
    text = pattern if isinstance(pattern, str) else f"(?:{'|'.join(pattern)})"
    return re.sub(r"<([a-z_]+)>", lambda name: _PARTS.get(name.group(1), name.group()), text)


_FILE = shipped_yaml("profkit.audit", "phrases.yaml")
_PARTS = {"number": NUMBER}
for _name, _pattern in _FILE["parts"].items():
    _PARTS[_name] = _filled(_pattern)
WORDS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(_filled(pattern), flags)
    for section, flags in (("words", re.I), ("exact", 0))
    for name, pattern in _FILE[section].items()
}
for _row in chain.from_iterable(_FILE["phrases"].values()):
    _row["patterns"] = [*map(_filled, _row["patterns"])]
    _row["unless"] = _filled(_row.get("unless", _NEVER))
PHRASES = convert(_FILE["phrases"], dict[str, tuple[Phrases, ...]])
