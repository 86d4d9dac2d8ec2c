"""Programs with a planted limit, before and after its fix, run by the clock of `synthetic.Host`.

What the fix gives is what this small simulation of host and GPU takes after it: it shares no code
with the replay of recorded steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from profkit.timeline.events import Events
from tests.application.synthetic import MS, PINNED, US, Host, Recording

Step = Callable[[Host, int], None]
STEPS = 16


@dataclass(frozen=True)
class Story:
    """A step before and after a fix, the category of what was planted; `is_complete` where nothing
    of that is left after it."""

    cause: str
    before: Step
    after: Step
    is_complete: bool = True


def recorded(step: Step, steps: int = STEPS) -> Events:
    """The program's timeline."""
    host = Host(Recording())
    _run(host, step, steps)
    return host.recording.events()


def step_time(step: Step, steps: int = STEPS) -> float:
    """Seconds of a step in steady state: of the second half of the steps."""
    halves = []
    for count in (steps // 2, steps):
        host = Host(Recording())
        _run(host, step, count)
        halves.append(max(host.now, *host.free.values()))
    return (halves[1] - halves[0]) / (steps - steps // 2) / 1e9


def _run(host: Host, step: Step, steps: int) -> None:
    host.now = MS
    for number in range(steps):
        with host.range("step"):
            step(host, number)


def _layers(host: Host, count: int, time: int, python: int = 0) -> None:
    for layer in range(count):
        host.compute(python)
        host.launch(f"kernel_{layer % 3}(float*)", time + layer % 3 * US)


def eager(host: Host, _: int) -> None:
    _layers(host, 60, 3 * US, python=6 * US)


def graph(host: Host, _: int) -> None:
    host.compute(6 * US)
    host.launch_graph(1, 60 * 5 * US)


def pageable(host: Host, _: int) -> None:
    host.copy(2 * MS, 20_000_000)
    _layers(host, 20, 100 * US)


def own_stream(host: Host, _: int) -> None:
    host.copy(400 * US, 20_000_000, source=PINNED, stream=9)
    _layers(host, 20, 100 * US)


def inline_loader(host: Host, _: int) -> None:
    host.compute(3 * MS)
    host.copy(100 * US, 4_000_000, source=PINNED)
    _layers(host, 30, 80 * US)
    host.synchronize()


def prefetching_loader(host: Host, _: int) -> None:
    host.copy(100 * US, 4_000_000, source=PINNED)
    _layers(host, 30, 80 * US)
    host.synchronize()


def reading(host: Host, _: int) -> None:
    for _ in range(6):
        _layers(host, 4, 25 * US, python=10 * US)
        host.copy(2 * US, 4, source="device", target="pageable")


def running_ahead(host: Host, _: int) -> None:
    for _ in range(6):
        _layers(host, 4, 25 * US, python=10 * US)


def searching(host: Host, _: int) -> None:
    host.launch_graph(1, 300 * US)
    host.copy(2 * US, 64, source="device", target="pageable")
    host.compute(280 * US)


def searching_behind(host: Host, _: int) -> None:
    host.launch_graph(1, 300 * US)
    host.copy(2 * US, 64, source="device", target=PINNED)
    host.compute(280 * US)


def allocating(host: Host, _: int) -> None:
    host.call("cudaMalloc", 300 * US)
    _layers(host, 8, 60 * US)
    host.synchronize("cudaFree")


def reusing(host: Host, _: int) -> None:
    _layers(host, 8, 60 * US)


def chains_in_one_stream(host: Host, _: int) -> None:
    for _ in range(12):
        for _ in range(8):
            host.launch("iterate(float*)", 50 * US, grid=(16, 1, 1))
    host.launch("sum(float*)", 5 * US)


def chains_in_streams(host: Host, _: int) -> None:
    for _ in range(12):
        for chain in range(8):
            host.launch("iterate(float*)", 50 * US, stream=20 + chain, grid=(16, 1, 1))
    host.launch("sum(float*)", 5 * US, stream=20)


def slow(host: Host, _: int) -> None:
    _layers(host, 30, 200 * US)


def fast(host: Host, _: int) -> None:
    _layers(host, 30, 150 * US)


STORIES = {
    "launches": Story("launch_bound", eager, graph),
    "pageable": Story("pageable_copies", pageable, own_stream),
    "loader": Story("data_loader", inline_loader, prefetching_loader),
    "reading": Story("synchronization", reading, running_ahead),
    "results": Story("data_loader", searching, searching_behind),
    "allocation": Story("allocation", allocating, reusing),
    "chains": Story("serialized_streams", chains_in_one_stream, chains_in_streams),
    "kernels": Story("slow_kernel", slow, fast, is_complete=False),
}
