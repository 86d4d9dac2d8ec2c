"""A program that makes no progress ends; one that works, prints or finishes does not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from profkit.capture import watchdog
from profkit.capture.process import follow, start
from profkit.capture.supervise import descendants
from profkit.capture.watchdog import Stalled, Watchdog
from tests.capture.test_supervise import wait_until

BUSY = "while True: pass"
WAITING = "import time; time.sleep(600)"
IDLE = 1.5


def watched(script: str, **limits: float) -> str:
    dog = Watchdog(**{"idle": IDLE, "silent": 60.0, "period": 0.2, **limits})
    return follow(start([sys.executable, "-c", script], {}), watchdog=dog).output


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the watchdog's clock."""
    now = [0.0]
    monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


@pytest.fixture
def started() -> Iterator[Callable[[str], int]]:
    """Starts a program below a process, whose number it gives."""
    shells: list[subprocess.Popen[bytes]] = []

    def start(script: str) -> int:
        words = ["sh", "-c", f"{sys.executable} -S -c '{script}' & wait"]
        shells.append(subprocess.Popen(words, start_new_session=True))
        return shells[-1].pid

    yield start
    for shell in shells:
        subprocess.run(["kill", "-9", "--", f"-{shell.pid}"], check=True)
        shell.wait()


def cpu_time(root: int) -> int:
    """Clock ticks of the processes below one."""
    stats = [Path(f"/proc/{process}/stat").read_text() for process in descendants(root)]
    return sum(sum(map(int, stat.rpartition(")")[2].split()[11:13])) for stat in stats)


def test_a_program_that_works_without_output_goes_on(
    waits: Callable[[float], None], started: Callable[[str], int]
) -> None:
    root, dog = started(BUSY), Watchdog(IDLE, 60.0)
    for _ in range(20):
        before = cpu_time(root)
        wait_until(lambda: cpu_time(root) > before + 2)  # noqa: B023  (at once)
        waits(1.1)
        assert not dog.barks(root)


def test_a_program_that_prints_now_and_then_goes_on(
    waits: Callable[[float], None], started: Callable[[str], int]
) -> None:
    root, dog = started(WAITING), Watchdog(IDLE, 60.0)
    for _ in range(20):
        waits(1.1)
        dog.feed()
        assert not dog.barks(root)


def test_a_program_that_waits_without_end_is_interrupted() -> None:
    with pytest.raises(Stalled, match=r"no progress for \d+ s") as stalled:
        watched(WAITING)
    assert not stalled.value.late


def test_ranks_that_spin_in_a_collective_are_ended_by_their_silence() -> None:
    with pytest.raises(Stalled):
        watched(BUSY, idle=600.0, silent=2.0)


def test_a_program_past_its_time_is_late() -> None:
    script = "import time\nwhile True: time.sleep(0.1); print('.', flush=True)"
    with pytest.raises(Stalled, match="its time was over") as stalled:
        watched(script, idle=600.0, limit=2.0)
    assert stalled.value.late


def test_what_is_saved_on_the_interrupt_is_there(tmp_path: Path) -> None:
    ready, file = tmp_path / "ready", tmp_path / "saved"
    script = f"""
import time
try:
    open({str(ready)!r}, "w").close()
    time.sleep(600)
except KeyboardInterrupt:
    open({str(file)!r}, "w").write("half of it")
"""

    class Late(Watchdog):
        """One that looks once the program is ready."""

        def barks(self, root: int) -> bool:
            return ready.exists() and super().barks(root)

    dog = Late(idle=IDLE, silent=60.0, period=0.2)
    with pytest.raises(Stalled):
        follow(start([sys.executable, "-c", script], {}), watchdog=dog)
    assert file.read_text(encoding="utf-8") == "half of it"
