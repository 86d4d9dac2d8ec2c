"""A program that is held before its first line: it notices nothing, and does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profkit.execution.injection import Hook, held, injected

PROGRAM = '''"""What it does."""
import sys
from library import value
import beside
import os
names = ("PROFKIT_HOLD", "PROFKIT_HOOKS", "PROFKIT_HOOK_LOG", "PYTHONPATH")
print([os.environ.get(name) for name in names], sys.dont_write_bytecode, value, sys.argv[1:])
'''
LIBRARY = """
import ctypes.util, os, pathlib, subprocess, sys, tempfile
print("imported", flush=True)
pathlib.Path(__file__).read_bytes()
open(os.devnull, "w").close()
ctypes.util.find_library("m")
assert tempfile.gettempdir()
with tempfile.TemporaryDirectory() as own:
    os.mkdir(own + "/inside")
    pathlib.Path(__file__).parent.mkdir(exist_ok=True)
    pathlib.Path(own, "inside", "note").touch()
    os.link(own + "/inside/note", own + "/note", follow_symlinks=False)
print("read", flush=True)
{effect}
value = 1
print("done", flush=True)
"""
WAIT = 0.3
"""Seconds in which what is not held would be done."""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in ("lib", "hold", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "run" / "program.py").write_text(PROGRAM)
    (tmp_path / "run" / "beside.py").write_text("open('made', 'w').close()")
    return tmp_path


def environment(work: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "PYTHONPATH": str(work / "lib")}


def start(
    work: Path, effect: str = "", variables: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    (work / "lib" / "library.py").write_text(LIBRARY.format(effect=effect))
    variables = variables or held(environment(work), work / "hold")
    words = [sys.executable, "program.py", "word"]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, env=variables, stdout=pipe, text=True, cwd=work / "run")


def lines(program: subprocess.Popen[str], count: int) -> list[str]:
    assert program.stdout is not None
    return [program.stdout.readline().strip() for _ in range(count)]


def ended(work: Path, program: subprocess.Popen[str]) -> str:
    (work / "hold" / "go").touch()
    output, _ = program.communicate(timeout=60)
    assert program.returncode == 0
    return output


def test_libraries_are_imported_and_nothing_of_the_program_runs(work: Path) -> None:
    program = start(work)
    assert lines(program, 3) == ["imported", "read", "done"]
    time.sleep(WAIT)
    assert program.poll() is None
    assert (work / "hold" / "held").read_text() == str(program.pid)
    assert not (work / "run" / "made").exists()
    assert not (work / "lib" / "__pycache__").exists()
    after = f"[None, None, None, '{work}/lib'] False 1 ['word']\n"
    assert ended(work, program) == after
    assert (work / "run" / "made").exists()


@pytest.mark.parametrize(
    "effect",
    [
        "open('made', 'w')",
        "os.open('made', os.O_CREAT)",
        "os.mkdir('made')",
        "subprocess.run(['touch', 'made'])",
        "os.system('touch made')",
        "os.fork() or (open('made', 'w'), os._exit(0)); os.wait()",
        "os.symlink('program.py', 'made')",
        "d = tempfile.mkdtemp(); open(d + '/made', 'w').close(); os.link(d + '/made', 'made')",
        "d = tempfile.mkdtemp(); os.symlink(os.getcwd(), d + '/l'); open(d + '/l/made', 'w')",
        "import socket; socket.socket(socket.AF_UNIX).bind('made')",
        "import sqlite3; sqlite3.connect('made').execute('create table t (x)')",
        "import threading; t = threading.Thread(target=open, args=('made', 'w')); "
        "t.start(); t.join()",
    ],
)
def test_an_effect_of_an_import_waits(work: Path, effect: str) -> None:
    (work / "run" / "beside.py").write_text("")
    program = start(work, effect)
    assert lines(program, 2) == ["imported", "read"]
    time.sleep(WAIT)
    assert program.poll() is None
    assert not (work / "run" / "made").exists()
    assert ended(work, program).startswith("done\n[None, None, None,")
    assert (work / "run" / "made").exists()


@pytest.mark.parametrize("is_held_first", [True, False])
def test_other_hooks_run_while_it_is_held_and_in_what_it_starts(
    work: Path, is_held_first: bool
) -> None:
    (work / "run" / "beside.py").write_text(
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import library'])"
    )
    (work / "hook.py").write_text("def install(module):\n    print('hooked', flush=True)\n")
    hooks, log = [Hook("library", work / "hook.py")], work / "log"
    if is_held_first:
        variables = injected(held(environment(work), work / "hold"), hooks, log)
    else:
        variables = held(injected(environment(work), hooks, log), work / "hold")
    program = start(work, variables=variables)
    printed = ["imported", "read", "done", "hooked"]
    assert lines(program, 4) == printed
    time.sleep(WAIT)
    assert program.poll() is None
    *child, last = ended(work, program).splitlines()
    assert child == printed
    assert last.startswith(f"[None, 'library={work}/hook.py', ")
    assert last.endswith(" False 1 ['word']")
    assert not log.exists()


def test_an_import_that_fails_fails_in_the_program(work: Path) -> None:
    program = start(work, "raise ImportError('not here')")
    assert lines(program, 2) == ["imported", "read"]
    (work / "hold" / "go").touch()
    output, _ = program.communicate(timeout=60)
    assert (program.returncode, output) == (1, "imported\nread\n")


def test_what_starts_after_the_hold_is_not_held(work: Path) -> None:
    (work / "hold" / "go").touch()
    program = start(work)
    program.communicate(timeout=60)
    assert (work / "run" / "made").exists()
    assert not (work / "hold" / "held").exists()
