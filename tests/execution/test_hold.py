"""A program that is held before its first effect: it notices nothing, and does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profkit.execution.injection import held

NOTES = """
import ctypes.util, os, pathlib, subprocess, sys, tempfile
import subject
sys.stdout.write("imported\\n")
sys.stdout.flush()
pathlib.Path(sys.argv[1]).read_bytes()
open(os.devnull, "w").close()
ctypes.util.find_library("m")
assert tempfile.gettempdir()
with tempfile.TemporaryDirectory() as own:
    os.mkdir(own + "/inside")
    pathlib.Path(own, "inside", "note").touch()
    os.link(own + "/inside/note", own + "/note", follow_symlinks=False)
pathlib.Path(sys.argv[1]).parent.mkdir(exist_ok=True)
sys.stdout.write("read\\n")
sys.stdout.flush()
exec(sys.argv[2])
names = ("PROFKIT_HOLD", "PROFKIT_HOOKS", "PROFKIT_HOOK_LOG", "PYTHONPATH")
print([os.environ.get(name) for name in names], sys.dont_write_bytecode)
"""
TORCH = """
import os, types
_C = types.SimpleNamespace(PyTorchFileWriter=os.mkfifo)
"""
WAIT = 0.3
"""Seconds in which what is not held would be done."""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in ("lib", "hold"):
        (tmp_path / name).mkdir()
    (tmp_path / "lib" / "subject.py").write_text("value = 1\n")
    (tmp_path / "lib" / "torch.py").write_text(TORCH)
    (tmp_path / "program.py").write_text(NOTES)
    return tmp_path


def start(work: Path, effect: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = held({**kept, "PYTHONPATH": str(work / "lib")}, work / "hold")
    words = [sys.executable, str(work / "program.py"), str(work / "program.py"), effect]
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True, cwd=work)


@pytest.mark.parametrize(
    "effect",
    [
        "open('made', 'w')",
        "os.open('made', os.O_CREAT)",
        "os.mkdir('made')",
        "d = tempfile.mkdtemp(); open(d + '/made', 'w').close(); os.link(d + '/made', 'made')",
        "subprocess.run(['touch', 'made'])",
        "os.system('touch made')",
        "os.fork() or (open('made', 'w'), os._exit(0)); os.wait()",
        "os.symlink('program.py', 'made')",
        "import torch; torch._C.PyTorchFileWriter('made')",
        "import socket; socket.socket(socket.AF_UNIX).bind('made')",
        "import sqlite3; sqlite3.connect('made').execute('create table t (x)')",
        "import threading; t = threading.Thread(target=open, args=('made', 'w')); "
        "t.start(); t.join()",
    ],
)
def test_an_effect_waits_and_then_nothing_is_left_of_the_hold(work: Path, effect: str) -> None:
    program = start(work, effect)
    assert program.stdout is not None
    assert program.stdout.readline() == "imported\n"
    assert program.stdout.readline() == "read\n"
    assert (work / "hold" / "held").read_text() == str(program.pid)
    time.sleep(WAIT)
    assert program.poll() is None
    assert not (work / "made").exists()
    assert not (work / "lib" / "__pycache__").exists()
    (work / "hold" / "go").touch()
    output, _ = program.communicate(timeout=60)
    assert program.returncode == 0
    assert (work / "made").exists()
    assert output == f"[None, None, None, '{work}/lib'] False\n"


def test_a_program_that_has_no_effect_ends_by_itself(work: Path) -> None:
    program = start(work, "pass")
    output, _ = program.communicate(timeout=60)
    assert output.startswith("imported\nread\n")
    assert program.returncode == 0


def test_what_starts_after_the_hold_is_not_held(work: Path) -> None:
    (work / "hold" / "go").touch()
    program = start(work, "open('made', 'w')")
    program.communicate(timeout=60)
    assert (work / "made").exists()
    assert not (work / "hold" / "held").exists()
