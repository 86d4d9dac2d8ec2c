"""What code reads, and whether it has changed."""

from __future__ import annotations

import functools
import logging
import math
import sqlite3
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from profkit.trial.child.state import State, Watch, difference, state

METRICS = """
class Tensor:
    _version = 0
    def data_ptr(self): return 0
class Mean:
    def __init__(self): self.total, self.cache = Tensor(), 0
"""


class Unaddressed:
    """As a tensor of a functional transform."""

    def data_ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor")


def test_what_can_not_be_looked_at_is_left_out() -> None:
    def nameless() -> None: ...

    nameless.__module__ = None  # type: ignore[assignment]
    read = {"nameless": nameless, "tensor": Unaddressed(), "rate": 0.1}
    before = state(read)
    assert difference(before, state(read)) == ""
    look = functools.partial(state, read)
    assert Watch().difference(before, look) == ""
    read["rate"] = 0.2
    assert difference(before, state(read)) == Watch().difference(before, look) == "rate"


def test_a_log_is_no_part_of_what_is_read(tmp_path: Path) -> None:
    """It is written to, and refers to all others."""
    log = logging.getLogger("dataset")
    log.addHandler(handler := logging.FileHandler(tmp_path / "log"))
    before = state(log)
    log.warning("a file is missing")
    logging.getLogger("of a module imported later")
    assert difference(before, state(log)) == ""
    log.removeHandler(handler)
    handler.close()
    rows = type("Rows", (), {"__module__": "logging_of_rows", "__slots__": ("rows",)})()
    rows.rows = 1
    before = state(rows)
    rows.rows = 2
    assert difference(before, state(rows)) == "rows"


def test_metrics_and_cached_functions_are_looked_at_in_a_dataset(tmp_path: Path) -> None:
    """The rest of what an installed class has may be a cache of its own."""
    (tmp_path / "metrics-1.dist-info").mkdir()
    (tmp_path / "metrics.py").write_text(METRICS)
    sys.path.append(str(tmp_path))
    try:
        metrics = import_module("metrics")
        counts = {"read": 0}
        metric, cached = metrics.Mean(), functools.lru_cache(lambda: counts["read"])
        before = state(metric, cached, is_own=True)
        metric.cache = 1
        assert difference(before, state(metric, cached, is_own=True)) == ""
        metric.total._version += 1
        assert difference(before, state(metric, cached, is_own=True)) == "total"
        metric.total._version -= 1
        counts["read"] = 1
        assert difference(before, state(metric, cached, is_own=True)) == "read"
    finally:
        sys.path.remove(str(tmp_path))


@given(size=st.integers(1, 1000), data=st.data(), nested=st.booleans())
def test_of_long_lists_all_numbers_are_looked_at_and_some_of_their_parts(
    size: int, data: st.DataObject, nested: bool
) -> None:
    read: list[object] = [[0.0] if nested else 0.0] * size
    count = math.ceil(size / 100) if nested else 1
    before, start = state(read), data.draw(st.integers(0, size - count))
    read[start : start + count] = [[1.0] if nested else 1.0] * count
    assert difference(before, state(read)) == "a value"


@given(size=st.integers(1, 1000), data=st.data())
def test_of_long_mappings_all_numbers_are_looked_at(size: int, data: st.DataObject) -> None:
    read = dict.fromkeys(range(size), 0.0)
    before = state(read)
    read[data.draw(st.integers(0, size - 1))] = 1.0
    assert difference(before, state(read)) == "a value"


def test_the_last_look_is_taken_in_any_case() -> None:
    read = {"rate": 0.1}
    watch, before = Watch(), state(read)
    look = functools.partial(state, read)
    assert watch.difference(before, look) == ""
    read["rate"] = 0.2
    assert watch.difference(before, look) == ""
    assert watch.difference(before, look, is_due=True) == "rate"


@given(looks=st.floats(1e-3, 1.0), step=st.floats(1e-4, 0.1), start=st.floats(0.0, 1000.0))
@example(looks=0.02, step=0.003, start=600.0)  # a function that took long to compile
def test_looks_take_a_share_of_the_time_until_the_next(
    looks: float, step: float, start: float
) -> None:
    """No short time after a long start has several."""
    clock, watch = [0.0], Watch()

    def look() -> State:
        clock.append(clock[-1] + looks)
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: clock[-1])
        watch.difference([], look)
        clock[-1] += start
        for _ in range(100):
            watch.difference([], look)
            clock[-1] += step
    seen = len(clock) - 2  # after the first
    assert seen <= 2 + step / looks  # of 100 steps


def test_a_cursor_of_a_database_is_no_iterator_that_is_used_up() -> None:
    read = {"cursor": sqlite3.connect(":memory:").cursor(), "rates": iter([0.1, 0.2])}
    before = state(read["cursor"])
    assert read["cursor"].execute("select 1").fetchone() == (1,)  # type: ignore[attr-defined]
    assert difference(before, state(read["cursor"])) == ""
    assert difference(state(read["rates"]), state(read["rates"])) != ""


class Base:
    seen: ClassVar[list[int]] = []
    sigma = 0.3


class Rows(Base):
    def __init__(self) -> None:
        self.rate, self.steps, self.random = 0.1, 0, np.random.default_rng(0)

    @property
    def half(self) -> float:
        return self.rate / 2

    def __getitem__(self, index: int) -> float:
        self.seen.append(index)
        return self.half * self.sigma * self.random.normal()


def changed(rows: Rows, change: Callable[[], object]) -> str:
    before = state(rows)
    change()
    return difference(before, state(rows))


def test_of_objects_what_their_code_names_is_looked_at() -> None:
    rows = Rows()
    assert changed(rows, lambda: setattr(rows, "steps", 1)) == ""
    assert changed(rows, lambda: setattr(rows, "rate", 0.2)) == "rate"
    assert changed(rows, lambda: setattr(Base, "sigma", 0.2)) == "sigma"
    assert changed(rows, lambda: Base.seen.append(1)) == "seen"
    assert changed(rows, lambda: rows.random.normal()) == "random"
    assert changed(rows, lambda: None) == ""
