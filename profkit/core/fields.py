"""The fields of JSON that others may have written, held to their kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as brief
from typing import Any

from profkit.core.errors import BadInput

_LARGEST = 1e30


def number(value: Any, what: str, low: float = -_LARGEST, high: float = _LARGEST) -> float:
    """The value, a number from `low` to `high`; raises BadInput, naming it `what`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadInput(f"{what} is {brief(value)}, not a number")
    if not low <= value <= high:
        raise BadInput(f"{what} is {brief(value)}, not from {low:g} to {high:g}")
    return value


@dataclass(frozen=True)
class Fields:
    """An object whose fields are read by kind; each raises BadInput for another kind.

    `what` names the object in messages. A field that is absent or null counts as unknown.
    """

    row: Mapping[str, Any]
    what: str

    def text(self, key: str, among: Sequence[str] | None = None) -> str:
        """A text, one of `among`; "" where it is unknown."""
        value = self.row.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise BadInput(f"{self._of(key)} is {brief(value)}, not a text")
        if among is not None and value not in among:
            known = ", ".join(filter(None, among))
            raise BadInput(f"{self._of(key)} is {brief(value)}, none of {known}")
        return value

    def number(self, key: str, low: float = -_LARGEST, high: float = _LARGEST) -> float | None:
        """A number from `low` to `high`; None where it is unknown."""
        value = self.row.get(key)
        return None if value is None else number(value, self._of(key), low, high)

    def whole(self, key: str, low: int, high: int = 2**53) -> int | None:
        """A whole number from `low` to `high`; None where it is unknown."""
        value = self.number(key, low, high)
        if value is not None and not isinstance(value, int):
            raise BadInput(f"{self._of(key)} is {brief(value)}, not a whole number")
        return value

    def flag(self, key: str) -> bool | None:
        """True, false, or None where it is unknown."""
        value = self.row.get(key)
        if value is not None and not isinstance(value, bool):
            raise BadInput(f"{self._of(key)} is {brief(value)}, not true or false")
        return value

    def fields(self, key: str) -> Fields:
        """An object; empty where it is unknown."""
        value = self.row.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise BadInput(f"{self._of(key)} is {brief(value)}, not an object")
        return Fields(value or {}, self._of(key))

    def rows(self, key: str) -> Sequence[Any]:
        """A list; empty where it is unknown."""
        value = self.row.get(key)
        if value is not None and not isinstance(value, (list, tuple)):
            raise BadInput(f"{self._of(key)} is {brief(value)}, not a list")
        return value or ()

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty where it is unknown."""
        rows = self.rows(key)
        if not all(isinstance(row, str) for row in rows):
            raise BadInput(f"{self._of(key)} holds what is no text")
        return tuple(rows)

    def needs(self, *keys: str) -> None:
        """Raise BadInput where one of the fields is unknown."""
        for key in keys:
            if self.row.get(key) is None:
                raise BadInput(f"{self.what} has no {key!r}")

    def _of(self, key: str) -> str:
        return f"{self.what}.{key}" if self.what else key
