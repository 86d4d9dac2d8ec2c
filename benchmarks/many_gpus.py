"""A baseline of 10,000 simulated cells on four simulated GPUs, with workers killed at random.

    python benchmarks/many_gpus.py [--cells N] [--seconds S] [--kill S]

By submitit's local executor, four jobs. Prints how many cells are lost and double, the overhead per
cell, and the driver's memory.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path

from profkit.execution.placement import Placement
from profkit.study import run as study
from profkit.study.folder import read_cells
from tests.simulated_gpus import (
    Killer,
    MemoryLog,
    gaps,
    measured_shapes,
    plan_of,
    variables,
)

GPUS = 4


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--kill", type=float, default=10.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        os.environ |= variables(folder, "", options.seconds)
        place = Placement("slurm", gpus=GPUS, cluster="local")
        plan = plan_of(folder, options.cells, place, backends=["a"])
        killer = stack.enter_context(
            Killer(plan.out, options.kill) if options.kill else nullcontext()
        )
        memory = stack.enter_context(MemoryLog())
        started, cpu = time.monotonic(), time.process_time()
        study.measure_missing(plan, started, lambda stage, _: print(stage, flush=True))
        wall = time.monotonic() - started
        rows = list(memory.rows)  # what follows reads all cells
        progress = json.loads((plan.out / "progress.json").read_text("utf-8"))
        cells = read_cells(plan.out)
        done = measured_shapes(folder)
        waits = sorted(gaps(done))
        count = sum(bool(cell.latency) for cell in cells)
        print(f"{options.cells} cells of {options.seconds} s on {GPUS} GPUs")
        print(f"  {count} measured, {options.cells - len(cells)} lost")
        print(f"  {len(cells) - len({cell.id for cell in cells})} double")
        print(f"  {killer.kills if killer else 0} workers killed, {progress['lost']} attempts lost")
        again = len(done) - len({each.shape for each in done})
        print(f"  {again} of them between the end of a cell and its delivery")
        busy = sum(each.end - each.start for each in done)
        print(f"  {wall:.1f} s wall; a GPU worked {busy / GPUS:.1f} s")
        print(f"  between two cells of a GPU: median {waits[len(waits) // 2] * 1e3:.1f} ms,")
        mean, p95 = sum(waits) / len(waits), waits[len(waits) * 95 // 100]
        print(f"  mean {mean * 1e3:.1f} ms, P95 {p95 * 1e3:.1f} ms")
        beyond = wall / options.cells - options.seconds / GPUS
        print(f"  wall beyond the cells' sleep, with all starts: {beyond * 1e3:.1f} ms a cell")
        living = (mean + busy / len(done) - options.seconds) / GPUS
        print(f"  without the starts of killed workers: {living * 1e3:.1f} ms a cell")
        own = time.process_time() - cpu
        print(f"  the driver's CPU, a cell: {own / options.cells * 1e3:.1f} ms")
        for share in (0.1, 0.25, 0.5, 0.75, 1.0):
            second, size = rows[min(len(rows) - 1, int(share * len(rows)))]
            print(f"  driver's memory after {second:5.0f} s: {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
