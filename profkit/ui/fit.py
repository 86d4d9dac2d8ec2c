"""Tables in the width that there is: whole, else with names shortened, else with cells in lines,
else row under row.

A cell is broken between words only, never inside a number, an interval, or between a number and its
unit.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from msgspec.structs import replace
from rich.cells import cell_len, chop_cells
from rich.text import Text

from profkit.ui import document as doc
from profkit.ui.document import Style, Table
from profkit.ui.names import told_apart
from profkit.ui.text import bar, literal_lines

STYLES = {
    Style.strong: "bold", Style.quiet: "dim", Style.good: "green",
    Style.bad: "red", Style.warning: "yellow",
}  # fmt: skip
"""How a terminal shows a style; others are plain there."""
BAR = 10  # a character per 10%
_GAP, _GAP_OF_NUMBERS = 3, 2
_NAME = 30  # characters, chosen: a template kernel's start and end can still be recognized
_NARROWEST_NAME = 12  # characters, chosen: a table of two names then fits 80 columns
_WORD = re.compile(r"\[[^\]]*\]|[+−-]?\d[\d.,]*(?: [^\W\d]\S*)?(?!\S)|\S+")


def trimmed(table: Table, width: int) -> Table:
    """The table without as many of its dispensable columns as it takes to fit the width; control
    characters are spelled out."""
    rows = [[_like(cell, literal_lines(cell)) for cell in row] for row in table.rows]
    columns = tuple(map(literal_lines, table.columns))
    names, dispensable = (
        tuple(map(literal_lines, each)) for each in (table.names, table.dispensable)
    )
    table = replace(
        table, rows=doc.cells(rows), columns=columns, names=names, dispensable=dispensable
    )
    gap = _GAP if table.words is None else _GAP_OF_NUMBERS
    for name in table.dispensable:
        if name in table.columns:
            sizes = [
                min(max(map(_longest_line, column)), _NAME if column[0] in table.names else width)
                for column in zip(table.columns, *table.rows, strict=True)
            ]
            if sum(gap + size for size in sizes) <= width + gap:
                break
            table = table.without(name)
    return table


def fitted(table: Table, width: int) -> tuple[list[Text], list[Text]]:
    """The lines of a table without title and note: its columns' names above (none where they stand
    beside their cells), and its rows."""
    gap = _GAP if table.words is None else _GAP_OF_NUMBERS
    table = _drawn(_shortened(table, width, gap))
    words = len(table.columns) if table.words is None else table.words
    columns = list(zip(table.columns, *table.rows, strict=True))
    wanted = [max(map(_longest_line, column)) for column in columns]
    least = [max(map(_longest_word, column)) for column in columns]
    room = width - gap * (len(columns) - 1)
    if sum(least) > room:
        return [], [Text(line) for line in _stacked(table.columns, table.rows, width)]
    widths = _widths(wanted, least, room)
    rows = [line for row in table.rows for line in _abreast(row, widths, gap, words)]
    return list(_abreast(table.columns, widths, gap, words)), rows


def _shortened(table: Table, width: int, gap: int) -> Table:
    """Names share what other columns leave, the shortest first."""
    columns = [list(column) for column in zip(table.columns, *table.rows, strict=True)]
    margins = [2 * max(table.depths, default=0), *[0] * (len(columns) - 1)]
    longest = [max(map(_longest_line, column)) for column in columns]
    sizes = [margin + size for margin, size in zip(margins, longest, strict=True)]
    places = [place for place, name in enumerate(table.columns) if name in table.names]
    room = width - gap * len(columns) - (gap + BAR if table.shares else 0)
    room -= sum(size for place, size in enumerate(sizes) if place not in places)
    for count, place in enumerate(sorted(places, key=sizes.__getitem__)):
        fair = max(_NARROWEST_NAME, room // (len(places) - count))
        room -= min(sizes[place], fair)
        short = told_apart(columns[place], max(_NARROWEST_NAME, fair - margins[place]))
        columns[place] = [_like(cell, short[cell]) for cell in columns[place]]
    return replace(table, rows=doc.cells(list(zip(*columns, strict=True))[1:]))


def _drawn(table: Table) -> Table:
    """The table with its indents and bars."""
    rows = [list(row) for row in table.rows]
    for row, depth in zip(rows, table.depths, strict=False):
        row[0] = _like(row[0], "  " * depth + row[0])
    for row, share in zip(rows, table.shares, strict=False):
        row.append(f"{bar(share, BAR):{BAR}}")
    columns = (*table.columns, "") if table.shares else table.columns
    return replace(table, columns=columns, rows=doc.cells(rows))


def _like(cell: str, text: str) -> str:
    """Another text in the style of a cell."""
    return doc.in_style(text, _style(cell))


def _style(cell: str) -> Style:
    """The style of a cell that has one."""
    styles = {span.style for span in doc.spans(cell)}
    return styles.pop() if len(styles) == 1 else Style.plain


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


def _abreast(row: Sequence[str], widths: Sequence[int], gap: int, words: int) -> Iterable[Text]:
    cells = [_lines(cell, width) for cell, width in zip(row, widths, strict=True)]
    styles = [STYLES.get(_style(cell), "") for cell in row]
    for parts in zip_longest(*cells, fillvalue=""):
        padded = (
            Text(_padded(part, width, left=column >= words), style)
            for column, (part, width, style) in enumerate(zip(parts, widths, styles, strict=True))
        )
        line = Text(" " * gap).join(padded)
        line.rstrip()
        yield line


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
