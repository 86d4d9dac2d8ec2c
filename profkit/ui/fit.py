"""Tables in the width that there is: whole, else with cells in lines, else row under row.

A cell is broken between words only, never inside a number, an interval, or between a number and its
unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from rich.cells import cell_len, chop_cells

from profkit.ui.document import Table

_GAP, _GAP_OF_NUMBERS = 3, 2
_WORD = re.compile(r"\[[^\]]*\]|[+−-]?\d[\d.,]*(?: [^\W\d]\S*)?(?!\S)|\S+")


def trimmed(table: Table, width: int) -> Table:
    """The table without as many of its dispensable columns as it takes to fit the width."""
    for name in table.dispensable:
        if name in table.columns:
            columns = zip(table.columns, *table.rows, strict=True)
            gap = _GAP if table.words is None else _GAP_OF_NUMBERS
            if sum(gap + max(map(_longest_line, column)) for column in columns) <= width + gap:
                break
            table = table.without(name)
    return table


def fitted(table: Table, width: int) -> tuple[list[str], list[str]]:
    """The lines of a table without title and note: its columns' names above (none where they stand
    beside their cells), and its rows."""
    words = len(table.columns) if table.words is None else table.words
    columns = list(zip(table.columns, *table.rows, strict=True))
    wanted = [max(map(_longest_line, column)) for column in columns]
    least = [max(map(_longest_word, column)) for column in columns]
    gap = _GAP if table.words is None else _GAP_OF_NUMBERS
    room = width - gap * (len(columns) - 1)
    if sum(least) > room:
        return [], _stacked(table.columns, table.rows, width)
    widths = _widths(wanted, least, room)
    rows = [line for row in table.rows for line in _abreast(row, widths, gap, words)]
    return list(_abreast(table.columns, widths, gap, words)), rows


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _longest_line(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _longest_word(text: str) -> int:
    return max(map(cell_len, _words(text)), default=0)


def _widths(wanted: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """What each column wants; the widest less where there is no room for all."""
    most = max(wanted)
    widths = list(wanted)
    while sum(widths) > room:
        most -= 1
        widths = [max(low, min(most, want)) for low, want in zip(least, wanted, strict=True)]
    return widths


def _abreast(row: Sequence[str], widths: Sequence[int], gap: int, words: int) -> Iterable[str]:
    cells = [_lines(cell, width) for cell, width in zip(row, widths, strict=True)]
    for parts in zip_longest(*cells, fillvalue=""):
        padded = (
            _padded(part, width, left=column >= words)
            for column, (part, width) in enumerate(zip(parts, widths, strict=True))
        )
        yield (" " * gap).join(padded).rstrip()


def _padded(text: str, width: int, *, left: bool = False) -> str:
    """As wide as `width` cells of a terminal; some characters take two."""
    room = " " * (width - cell_len(text))
    return room + text if left else text + room


def _stacked(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Each row under the one before, a cell a line beside its column's name."""
    indent = 2
    margin = indent + max(map(cell_len, names)) + 2
    stacked = []
    for row in rows:
        for column, (name, cell) in enumerate(zip(names, row, strict=True)):
            head = _padded(f"{' ' * indent if column else ''}{name}", margin)
            for line in _lines(cell, max(1, width - margin)) if cell else []:
                stacked.append(head + line)
                head = " " * margin
    return stacked


def _lines(text: str, width: int) -> list[str]:
    """A text in lines: its own, broken between words; a word wider than a line is cut."""
    return [line for own in text.split("\n") for line in _broken(own, width)]


def _broken(text: str, width: int) -> list[str]:
    if cell_len(text) <= width:
        return [text]
    lines = [""]
    for word in _words(text):
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
            continue
        pieces = chop_cells(word, width)
        lines = [*lines, *pieces] if lines[-1] else pieces
    return lines
