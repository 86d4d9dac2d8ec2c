"""A large history: a million rows queried, 100,000 runs added.

    python benchmarks/history.py [--rows 1000000] [--runs 100000]

Runs are files of `profkit time --save` with two series of 8 blocks of 30 samples, as `reports/h200/
timing/flash_cudnn.json` has; a query is what `history list` and `history show` ask. Wall seconds,
the least of three for queries, in a process that has imported what it uses; the load of the machine
before each part.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from profkit.commands.history import spread
from profkit.history.addition import add_runs
from profkit.history.readers import Stated
from profkit.history.record import Conditions, Point, Series
from profkit.history.store import Store

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "reports/h200/timing/flash_cudnn.json"
START = datetime(2023, 11, 1, tzinfo=UTC)
SERIES, MONTHS, BLOCKS = 2_000, 36, 8  # chosen: 20 targets of 100 variants and shapes, three years
REPEATS = 3  # of a query; chosen


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--runs", type=int, default=100_000)
    sizes = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        query(Store(Path(folder) / "queried"), sizes.rows)
        add(Path(folder), sizes.runs)


def query(store: Store, rows: int) -> None:
    """Fill a store month by month, then ask it."""
    draw = random.Random(1)
    print(f"load {os.getloadavg()[0]:.1f}")
    for month in range(MONTHS):
        store.add(list(points(draw, month, rows // MONTHS)))
    parts = list(store.folder.glob("*/*.parquet"))
    size = sum(part.stat().st_size for part in parts)
    print(f"{rows:,} rows in {len(parts)} parts, {size / 1e6:.0f} MB")
    series = store.overviews()[SERIES // 2].series
    report("list all series", lambda: store.overviews())
    report("show one series", lambda: store.points([series]))


def points(draw: random.Random, month: int, count: int) -> Iterator[Point]:
    conditions = Conditions(
        "GPU-0", "580.1", "13.0", "power limit 700 W", "events", "cold", "0.1.0"
    )
    for number in range(count):
        key = draw.randrange(SERIES)
        yield Point(
            Series(
                f"target{key % 20}", f"v{key // 20 % 10}", f"s{key // 200}", "NVIDIA H200", "main"
            ),
            conditions,
            START + timedelta(days=30 * month, seconds=draw.random() * 28 * 86_400),
            f"{draw.getrandbits(256):064x}",
            f"runs/{month}/{number}.json",
            f"{draw.getrandbits(160):040x}",
            tuple(draw.gauss(1e-4, 1e-6) for _ in range(BLOCKS)),
        )


def report(name: str, ask: Callable[[], object]) -> None:
    times = []
    for _ in range(REPEATS):
        start, start_cpu = time.perf_counter(), time.process_time()
        ask()
        times.append((time.perf_counter() - start, time.process_time() - start_cpu))
    wall, cpu = min(times)
    print(f"{name}: {wall:.2f} s (CPU {cpu:.2f} s)")


def add(folder: Path, runs: int) -> None:
    """Write files of runs, then add their folder."""
    document = json.loads(RECORDED.read_text(encoding="utf-8"))
    files = folder / "files"
    files.mkdir()
    for number in range(runs):
        document["created"] = (START + timedelta(minutes=10 * number)).isoformat()
        (files / f"{number}.json").write_text(json.dumps(document), encoding="utf-8")
    size = (files / "0.json").stat().st_size
    store = Store(folder / "added")
    print(f"load {os.getloadavg()[0]:.1f}")
    start = time.perf_counter()
    result = add_runs(store, [files], Stated(branch="main"), spread)
    wall = time.perf_counter() - start
    assert result.runs == runs, result
    print(f"{runs:,} runs of {size / 1e3:.0f} kB added: {wall:.1f} s, {os.cpu_count()} CPUs")


if __name__ == "__main__":
    main()
