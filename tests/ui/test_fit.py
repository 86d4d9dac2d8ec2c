"""Tables in the width that there is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from profkit.ui.document import Table
from profkit.ui.fit import fitted

WORDS = st.text(alphabet="ab1 カé名[,]", min_size=1, max_size=24).map(str.strip).filter(bool)


def test_columns_stand_under_each_other_where_characters_are_wide() -> None:
    grid = Table("", ("Kernel", "Time"), (("カーネル_名前", "1.00 ms"), ("copy", "20.0 µs")))
    names, rows = fitted(grid, 60)
    starts = [cell_len(line.plain[: line.plain.index(word)]) for line, word in zip(
        [*names, *rows], ("Time", "1.00 ms", "20.0 µs"), strict=True
    )]  # fmt: skip
    assert len(set(starts)) == 1


@pytest.mark.parametrize("numbers", [False, True])
@given(
    rows=st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=4), width=st.integers(24, 90)
)
def test_a_table_is_no_wider_than_its_room(
    rows: list[tuple[str, ...]], width: int, numbers: bool
) -> None:
    names, lines = fitted(
        Table("", ("A", "B", "C"), tuple(rows), words=1 if numbers else None), width
    )
    assert all(line.cell_len <= width for line in [*names, *lines])
