"""Programs under supervision: whatever else runs on the machine, nothing of them is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from profkit.capture.doctor import diagnose
from profkit.capture.process import TimedOut, follow, run, start, supervised

NAMED = """
import ctypes, sys, time
ctypes.CDLL(None).prctl(15, "x日本語のプロセス".encode()[:15], 0, 0, 0)
print("named", flush=True)
time.sleep(600)
"""
HEADLESS = """
import ctypes, os, sys, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""


def environment() -> dict[str, str]:
    return dict(os.environ)


def is_named_by_a_process(file: Path) -> bool:
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if os.fsencode(file) in line.read_bytes():
                return True
    return False


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return not stat.rpartition(b")")[2].split()[0].startswith(b"Z")


def wait_until(reached: Callable[[], object], seconds: float = 200.0) -> None:
    """Wait for what comes soon: only a hang takes so long."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)


def left_of(pid_file: Path) -> int:
    wait_until(lambda: pid_file.exists() and pid_file.read_text())
    return int(pid_file.read_text())


@pytest.fixture
def oddly_named() -> Iterator[None]:
    """Another process, its name cut inside a character."""
    process = subprocess.Popen([sys.executable, "-S", "-c", NAMED], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield
    process.stdout.close()
    process.kill()
    process.wait()


@pytest.mark.usefixtures("oddly_named")
def test_a_foreign_process_of_any_name_changes_nothing(tmp_path: Path) -> None:
    assert "DCGM" in {check.name for check in diagnose(tmp_path).checks}
    pid_file = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {pid_file}; echo said; exit 3"
    finished = run(["sh", "-c", script], environment=environment(), timeout=600)
    assert (finished.status, finished.output) == (3, "said\n")
    assert not is_alive(left_of(pid_file))
    with pytest.raises(TimedOut):
        run(["sh", "-c", f"echo $$ > {pid_file}; sleep 600"], environment=environment(), timeout=1)
    assert not is_alive(left_of(pid_file))


def test_a_process_whose_first_thread_has_ended_is_ended_too(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = (
        f"{sys.executable} -S -c '{HEADLESS}' {pid_file} & while ! [ -s {pid_file} ]; do :; done"
    )
    finished = run(["bash", "-c", f"{script}; sleep 0.2"], environment=environment(), timeout=600)
    assert finished.status == 0, finished.output
    process = Path(f"/proc/{left_of(pid_file)}")
    wait_until(lambda: not process.exists())  # a third of what it would live


def test_a_supervisor_whose_parent_is_gone_already_runs_nothing(tmp_path: Path) -> None:
    made = tmp_path / "made"
    through_another = ["sh", "-c", '"$@"; exit $?', "sh", *supervised(["touch", str(made)])]
    assert subprocess.run(through_another, check=False).returncode == 143
    assert not made.exists()


@pytest.mark.parametrize("pause", [0, 0.01, 0.02, 0.04, 0.08])
def test_a_killed_parent_takes_all_with_it_from_the_start(tmp_path: Path, pause: float) -> None:
    pid_file = tmp_path / "pid"
    starter = (
        "import os, subprocess, sys, time\n"
        "from profkit.capture.process import supervised\n"
        "subprocess.Popen(supervised(sys.argv[2:]), start_new_session=True)\n"
        "time.sleep(float(sys.argv[1])); os._exit(0)"
    )
    command = ["sh", "-c", f"echo $$ > {pid_file}; sleep 600"]
    subprocess.run([sys.executable, "-c", starter, str(pause), *command], check=True)
    wait_until(lambda: not is_named_by_a_process(pid_file))
    said = pid_file.read_text().strip() if pid_file.exists() else ""
    wait_until(lambda: not (said and is_alive(int(said))))
    assert not is_named_by_a_process(pid_file)


def test_output_is_kept_from_its_end() -> None:
    pieces: list[int] = []
    supervisor = start(["sh", "-c", "yes | head -c 9000000; echo end"], environment())
    finished = follow(supervisor, on_text=lambda text: pieces.append(len(text)))
    assert sum(pieces) == 9_000_004
    assert finished.output.endswith("y\nend\n")
    assert 1 << 20 <= len(finished.output) < 2 << 20
    assert "Broken pipe" not in finished.output


def test_what_can_not_be_run_is_said(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF, not")
    program.chmod(0o755)
    finished = run([str(program)], environment=environment())
    assert finished.status == 126
    assert "program: Exec format error" in finished.output
