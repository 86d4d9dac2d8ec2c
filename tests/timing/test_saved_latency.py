"""Saved latencies: whatever a file holds, it is read, or refused in one line."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.core.errors import ProfkitError
from profkit.timing.latency import analyze_latency, interleaved
from profkit.timing.latency_file import read_latencies
from profkit.timing.latency_format import Latency, Recorded
from tests.conftest import Cli

_HARMLESS, _REFUSED = {0, 2, 3, 4, 5}, 5
_GONE = object()
_LONE_SURROGATE = chr(0xD800)
_ODD: tuple[object, ...] = (
    _GONE, None, True, False, 0, -1, 1, 3, 10**400, -(10**30), 0.5, 1e-310, 1e308, 1e6,
    float("nan"), float("inf"), "", "5", "x\ty", "profkit.time/2", "wall", "9.0.1", "-1.0",
    _LONE_SURROGATE, [], [[]], {}, [1], ["x"], {"a": 1}, {"turn": 0, "samples": [1e-4]},
    [[[{"a": [None]}]]],
)  # fmt: skip
_RATE = {"flop": 1.7e10, "bytes": 6.7e7, "what": "attention"}
_GPU = {
    "name": "NVIDIA H200", "uuid": "GPU-1", "compute_capability": "9.0", "multiprocessors": 132,
    "memory_bytes": 150_109_880_320, "driver": "580", "ecc": True,
}  # fmt: skip
_READY = {
    "rough": 1e-4, "host": 2e-4, "empty": 1e-6, "flush": 4e-5, "warmup": 0.5, "steady": False,
    "waits": True, "memory": {"peak_allocated": 1, "peak_reserved": 2}, "group": 2,
}  # fmt: skip
_MOMENT = {"sm_clock": 1.98e9, "power": 700, "temperature": 40, "throttled_by": ["a cap"]}


def _row(label: str, turns: tuple[int, ...]) -> dict[str, Any]:
    blocks = [
        {
            "turn": turn, "seconds": 0.1, "gpu": dict(_MOMENT),
            "samples": [1e-4 * (1 + 1e-3 * ((7 * at + turn) % 5)) for at in range(10)],
        }
        for turn in turns
    ]  # fmt: skip
    return {
        "label": label, "timer": "events", "cache": "warm", "gpu": _GPU, "check": {"name": label},
        "target": {"name": "t", "shapes": {"n": 1}, "dtype": "float16", "work": _RATE},
        "ready": _READY, "blocks": blocks,
    }  # fmt: skip


_VALID = {
    "schema": "profkit.time/1",
    "seed": 42,
    "warmup": 0.5,
    "floor": 0.01,
    "fingerprint": {"versions": {"torch": "2.11", "cudnn": None}, "gpu": _GPU},
    "fingerprint_sha256": "x",
    "series": [_row("a", (0, 3, 4, 7)), _row("b", (1, 2, 5, 6))],
}
_OTHERS = {
    "raw_latencies": [0.1, 0.11, 0.1, 0.12],
    "statistics": {"median_ms": 0.1, "ci_95_lower": 0.09, "ci_95_upper": 0.12},
    "fingerprint": {"versions": 5},
    "series": 1,
}


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in a document; of the samples, to the first only."""
    if at:
        yield at
    inner: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inner = list(enumerate(value))[:2]
    for key, one in inner:
        yield from _places(one, (*at, key))


_CHANGES = st.lists(
    st.tuples(st.sampled_from(sorted(_places(_VALID), key=str)), st.sampled_from(_ODD)),
    min_size=1,
    max_size=3,
)
_OTHER_CHANGES = st.lists(
    st.tuples(st.sampled_from(sorted(_places(_OTHERS), key=str)), st.sampled_from(_ODD)),
    min_size=1,
    max_size=3,
)


def _changed(document: Any, changes: list[tuple[tuple[Any, ...], Any]]) -> Any:
    document = copy.deepcopy(document)
    for (*way, last), odd in changes:
        place = document
        try:
            for key in way:
                place = place[key]
            if odd is _GONE:
                del place[last]
            else:
                place[last] = copy.deepcopy(odd)
        except (KeyError, IndexError, TypeError):
            continue
    return document


_anything = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def _said(file: Path, text: str) -> list[str]:
    """The first latency's median, or the lines with which the file is refused."""
    file.write_text(text, encoding="utf-8")
    try:
        return [
            f"{analyze_latency(latency).summary.median}"
            for latency in read_latencies(file, "us").latencies
        ][:1]
    except ProfkitError as error:
        return str(error).splitlines()


@_anything
@given(changes=st.one_of(_CHANGES, _OTHER_CHANGES))
def test_any_document_is_read_or_refused(
    tmp_path: Path, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    for document in (_VALID, _OTHERS):
        assert len(_said(tmp_path / "odd.json", json.dumps(_changed(document, changes)))) == 1


@_anything
@given(
    document=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["schema", "series", "samples", "statistics", "median_us"]),
                inner | st.just("profkit.time/1"),
            )
        ),
    )
)
def test_any_json_is_read_or_refused(tmp_path: Path, document: Any) -> None:
    assert len(_said(tmp_path / "odd.json", json.dumps(document))) == 1


@settings(_anything, max_examples=settings().max_examples // 3)
@given(changes=_CHANGES)
def test_whatever_is_read_can_be_shown_and_compared(
    tmp_path: Path, profkit_cli: Cli, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    odd, whole = tmp_path / "odd.json", tmp_path / "whole.json"
    odd.write_text(json.dumps(_changed(_VALID, changes)), encoding="utf-8")
    whole.write_text(json.dumps(_VALID), encoding="utf-8")
    for words in (
        ("time", "--from", odd, "--compare", "a,b", "--preset", "strict"),
        ("time", "--from", odd, "--format", "json"),
        ("time", "--from", odd, "--format", "markdown"),
        ("compare", odd, whole, "--floor", "1%"),
        ("compare", whole, odd, "--format", "json"),
    ):
        done = profkit_cli(*words, status=None)
        assert done.exception is None or isinstance(done.exception, SystemExit), words
        assert done.exit_code in _HARMLESS, (words, done.stderr)
        if done.exit_code == _REFUSED:
            assert len(done.stderr.splitlines()) == 1


def test_the_document_that_is_changed_is_read_itself(tmp_path: Path) -> None:
    file = tmp_path / "valid.json"
    for document, labels in ((_VALID, ["a", "b"]), (_OTHERS, ["valid"])):
        file.write_text(json.dumps(document), encoding="utf-8")
        found = read_latencies(file).latencies
        assert [latency.label for latency in found] == labels


def _latency(*turns: int) -> Latency:
    return Latency(label="x", blocks=tuple(Recorded(turn=turn, samples=(1e-4,)) for turn in turns))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0, 3, 4, 7), (1, 2, 5, 6), True),
        ((0, 3), (1, 2), True),
        ((0, 11, 12, 23), (5, 6, 17, 18), True),
        ((0, 2, 4, 7), (1, 3, 5, 6), True),
        ((0, 2, 4, 6, 8, 11), (1, 3, 5, 7, 9, 10), False),
        ((0, 2, 4, 6), (1, 3, 5, 7), False),
        ((0, 1, 2, 3), (4, 5, 6, 7), False),
        ((0, 1, 4, 5), (2, 3, 6, 7), False),
        ((0, 0, 0, 0), (0, 0, 0, 0), False),
        ((3, 4, 7, 8), (1, 2, 5, 6), False),
    ],
)
def test_what_counts_as_interleaved(
    first: tuple[int, ...], second: tuple[int, ...], expected: bool
) -> None:
    assert interleaved(_latency(*first), _latency(*second)) is expected
    assert interleaved(_latency(*second), _latency(*first)) is expected


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ((0,), False),
        ((0, 1), False),
        ((0, 3), True),
        ((0, 1, 2, 3), False),
        ((0, 3, 4, 7), True),
        ((1, 2, 5, 6), True),
        ((0, 1, 2, 7), False),
    ],
)
def test_blocks_of_one_latency_with_others_between(turns: tuple[int, ...], expected: bool) -> None:
    assert _latency(*turns).took_turns is expected
