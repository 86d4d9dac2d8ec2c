"""What a view is made of: titled rows and tables of words; each format lays them out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A labeled value; `share` draws a bar, `note` follows in a quieter voice."""

    label: str
    value: str
    note: str = ""
    share: float | None = None


@dataclass(frozen=True)
class Panel:
    """Rows under a title. A `wide` one has long notes and wants the whole width."""

    title: str
    rows: tuple[Row, ...]
    note: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Grid:
    """A table under a title; the first column holds labels."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
