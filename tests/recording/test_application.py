"""`profile --app` against stand-ins: nsys hands out made-up timelines, ncu filters their launches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import profkit
from profkit.application.picks_file import NODES, PICKS, PicksFile
from profkit.core.typed_file import read_file
from profkit.runs.run import verify
from tests.application.export import write_export
from tests.application.synthetic import MS, US, Host, Recording
from tests.conftest import ROOT, plain_bytes
from tests.recording.test_profile import Bench, plan

REPORT = "sdpa_s512_math"


def launches() -> list[tuple[str, Any, Any, float]]:
    """Kernels of a recorded report: name, grid, block, duration (s)."""
    report = profkit.load(ROOT / "reports" / "h200" / f"{REPORT}.ncu-repz").summary
    return [(row.name, row.grid, row.block, row.duration) for row in report.launches]


def program(
    folder: Path, steps: int = 10, ranks: int = 1, graphs: bool = False, communication: bool = False
) -> Path:
    """The timeline of a program whose steps launch those kernels; step 0 takes ten times as long.

    With `graphs` the launches of a step are a graph: the timeline is that of a run by node.
    """
    recording = Recording()
    hosts = [
        Host(recording, process=rank + 1, device=rank, number=100 + rank, now=5 * MS)
        for rank in range(ranks)
    ]
    for step in range(steps):
        for host in hosts:
            with host.range("step"):
                for name, grid, block, duration in launches():
                    time = round(duration * 1e9) * (10 if step == 0 else 1)
                    host.launch(name, time, grid=grid, block=block)
                if communication:
                    host.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 900 * US)
                host.synchronize()
    return write_export(recording.events(), folder / "program.sqlite")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    for name in ("ncu", "nsys"):
        shutil.copy2(ROOT / "tests" / "stand_in" / name, tmp_path / name)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "report.ncu-rep").write_bytes(plain_bytes(REPORT))
    return Bench(tmp_path)


def planned(bench: Bench, timeline: Path, mode: str = "good", **more: Any) -> None:
    plan(bench.folder, mode, timeline=str(timeline), launches=str(timeline), **more)


def picks(bench: Bench) -> PicksFile:
    (run,) = bench.kept()
    verify(run)
    return read_file(run / PICKS, PicksFile)


def profiled(bench: Bench) -> list[Any]:
    return list(json.loads((bench.folder / "ncu_profiled.json").read_text()))


def test_an_application_becomes_a_run_of_its_timeline_and_picked_kernels(bench: Bench) -> None:
    planned(bench, program(bench.folder))
    done = bench.profile("--app", "--nvtx", "step", "--", bench.app("true"))
    assert done.returncode == 0, done.stderr
    file = picks(bench)
    assert len(file.picks) == 8
    assert all(pick.launch is not None for pick in file.picks), file.picks
    (run,) = bench.kept()
    report = profkit.load(run)
    for pick in file.picks:
        launch = report.summary.launches[pick.launch or 0]
        assert (launch.name, launch.grid, launch.block) == (pick.kernel, pick.grid, pick.block)
    met = {(name, tuple(grid), tuple(block)) for name, grid, block, _ in profiled(bench)}
    assert met >= {(pick.kernel, pick.grid, pick.block) for pick in file.picks}
    assert len(profiled(bench)) <= 10  # the picks, and little else
    assert all(number > 1 for *_, number in profiled(bench))  # none of the first, slow step
