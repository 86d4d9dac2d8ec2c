"""Orders of turns: each takes one a block, none has a better place."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.timing.orders import order


@given(count=st.integers(1, 12), block=st.integers(0, 100))
def test_each_takes_one_turn_a_block(count: int, block: int) -> None:
    assert sorted(order(count, block)) == list(range(count))


def test_none_are_none_and_many_are_quick() -> None:
    assert order(0, 3) == ()
    assert sorted(order(40, 1)) == list(range(40))


def test_two_are_interleaved_there_and_back() -> None:
    assert [order(2, block) for block in range(4)] == [(0, 1), (1, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize("count", range(3, 13))
def test_none_follows_itself_within_eight_blocks(count: int) -> None:
    turns = [place for block in range(8) for place in order(count, block)]
    assert all(one != following for one, following in pairwise(turns))


@pytest.mark.parametrize("count", range(2, 13))
@pytest.mark.parametrize("blocks", [6, 8, 16, 32])
def test_each_of_a_pair_begins_a_third_of_the_blocks(count: int, blocks: int) -> None:
    rows = [order(count, block) for block in range(blocks)]
    for a, b in combinations(range(count), 2):
        first = sum(row.index(a) < row.index(b) for row in rows)
        assert min(first, blocks - first) >= blocks // 3


@pytest.mark.parametrize("count", range(3, 13))
def test_within_a_design_each_follows_each_other_equally_often(count: int) -> None:
    blocks = 2 * count if count % 2 else count
    followed: Counter[tuple[int, int]] = Counter()
    seen: set[tuple[int, ...]] = set()
    for block in range(2 * blocks):
        row = order(count, block)
        if row not in seen:
            followed.update(pairwise(row))
        seen.add(row)
    assert len(seen) == blocks
    assert set(followed.values()) == {2 if count % 2 else 1}
    assert len(followed) == count * (count - 1)
