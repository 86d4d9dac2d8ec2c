"""How sentences say figures: the patterns of `phrases.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from profkit.audit.claim_reading import Reading, groups_of, scale_of, words_before
from profkit.audit.printed_numbers import NUMBER
from profkit.core.typed_file import Model, convert
from profkit.core.yaml_files import shipped_yaml

_NEVER = "(?!)"


class Phrases(Model, frozen=True, kw_only=True):
    """Patterns whose first group is a figure of a quantity, and the second its unit if it has one.

    `like` are examples. `unit` is the unit's name where the text does not say, or says it in many
    ways. The words before a figure end in `after` and not in `unless_after`; the text does not hold
    `unless`, and another quantity that it `needs` was found. Most patterns are tried on what is
    left, some on the `whole` text.
    """

    quantity: str
    like: tuple[str, ...]
    patterns: tuple[str, ...]
    unit: str = ""
    after: str = ""
    unless_after: str = _NEVER
    unless: str = _NEVER
    needs: str = ""
    whole: bool = False
    scale: float | None = None

    def __call__(self, reading: Reading) -> None:
        if re.search(self.unless, reading.text) or (self.needs and self.needs not in reading.found):
            return
        for pattern in self.patterns:
            for match in re.finditer(pattern, reading.text if self.whole else reading.left):
                before = words_before(reading.text, match.start())
                after = re.search(rf"{self.after}$", before)
                if after and not re.search(rf"{self.unless_after}$", before):
                    self._take(reading, match)

    def _take(self, reading: Reading, match: re.Match[str]) -> None:
        number, *units = groups_of(match)
        written = match.group(units[0]) if units else self.unit
        scale = scale_of(written) if self.scale is None else self.scale
        reading.take_figure(match, self.quantity, number, self.unit or written, scale)


def _filled(pattern: Any, parts: Mapping[str, str]) -> str:
    """A pattern with its parts; any item of a list."""
    text = pattern if isinstance(pattern, str) else f"(?:{'|'.join(pattern)})"
    return re.sub(r"<([a-z_]+)>", lambda name: parts.get(name.group(1), name.group()), text)


def _phrases(row: Mapping[str, Any], parts: Mapping[str, str]) -> Phrases:
    patterns = [_filled(pattern, parts) for pattern in row["patterns"]]
    unless = _filled(row.get("unless", _NEVER), parts)
    return convert({**row, "patterns": patterns, "unless": unless}, Phrases)


_FILE = shipped_yaml("profkit.audit", "phrases.yaml")
_PARTS = {"number": NUMBER}
for _name, _pattern in _FILE["parts"].items():
    _PARTS[_name] = _filled(_pattern, _PARTS)
WORDS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(_filled(pattern, _PARTS), flags)
    for section, flags in (("words", re.I), ("exact", 0))
    for name, pattern in _FILE[section].items()
}
PHRASES: Mapping[str, tuple[Phrases, ...]] = {
    group: tuple(_phrases(row, _PARTS) for row in rows) for group, rows in _FILE["phrases"].items()
}
