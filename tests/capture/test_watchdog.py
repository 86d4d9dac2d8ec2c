"""A program that makes no progress ends; one that works, prints or finishes does not."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from profkit.capture.process import run
from profkit.capture.watchdog import Stalled, Watchdog


def watched(script: str, **limits: float) -> str:
    watchdog = Watchdog(**{"idle": 1.5, "silent": 60.0, "period": 0.2, **limits})
    return run([sys.executable, "-c", script], environment={}, watchdog=watchdog).output


def test_a_program_that_works_without_output_goes_on() -> None:
    script = "import time; end = time.time() + 4\nwhile time.time() < end: pass\nprint('done')"
    assert watched(script) == "done\n"


def test_a_program_that_prints_now_and_then_goes_on() -> None:
    script = "import time\nfor _ in range(8): time.sleep(0.5); print('.', flush=True)"
    assert watched(script).count(".") == 8


def test_a_program_that_waits_without_end_is_interrupted() -> None:
    started = time.monotonic()
    with pytest.raises(Stalled, match=r"no progress for \d s") as stalled:
        watched("import time; time.sleep(600)")
    assert not stalled.value.late
    assert time.monotonic() - started < 30


def test_ranks_that_spin_in_a_collective_are_ended_by_their_silence() -> None:
    with pytest.raises(Stalled):
        watched("while True: pass", silent=2.0)


def test_a_program_past_its_time_is_late() -> None:
    script = "import time\nwhile True: time.sleep(0.1); print('.', flush=True)"
    with pytest.raises(Stalled, match="its time was over") as stalled:
        watched(script, limit=2.0)
    assert stalled.value.late


def test_what_is_saved_on_the_interrupt_is_there(tmp_path: Path) -> None:
    file = tmp_path / "saved"
    script = f"""
import time
try:
    time.sleep(600)
except KeyboardInterrupt:
    open({str(file)!r}, "w").write("half of it")
"""
    with pytest.raises(Stalled):
        watched(script)
    assert file.read_text(encoding="utf-8") == "half of it"
