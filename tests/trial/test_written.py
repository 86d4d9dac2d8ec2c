"""Files that a program in place writes, and what is left of them."""

import json
import os
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from profkit.capture.written import listed, put_back
from profkit.trial.run import KEPT, Extent, run_program
from tests.trial.test_program import cli

WRITING = """
import os, shutil, sqlite3, sys, torch
open(1, "w", closefd=False).write("")
folder = os.environ["ROOM"]
os.chdir(folder)
open("metrics.csv", "w").write("step")
open("log", "a").write("more")
open(__file__.replace("program.py", "beside"), "w").close()
open("read")
open("lock", "w").write("lock")
open("made", "w").close()
for place in ("runs/1", ".cache/models"):
    os.makedirs(place, exist_ok=True)
    open(f"{place}/made", "w").close()
torch.save({}, "weights.pt")
open("part", "w").write("new")
os.replace("part", "replaced")
os.remove("latest")
os.symlink("b", "latest")
shutil.rmtree("old", ignore_errors=True)
sqlite3.connect("runs.db").execute("create table if not exists a(b)")
open("large", "w").close()
os._exit(0)
"""
AFTER = {
    "large": "changed",
    **dict.fromkeys(("made", "runs/1/made"), "removed"),
    **dict.fromkeys(
        (
            "latest",
            "log",
            "metrics.csv",
            "old/deep/model",
            "replaced",
            "runs.db",
            "weights.pt",
        ),
        "as before",
    ),
}


def test_files_that_runs_change_are_as_before(
    tmp_path: Path,
) -> None:
    room, kept = tmp_path / "room", tmp_path / "trial" / "kept"
    (room / "old" / "deep").mkdir(parents=True)
    kept.mkdir(parents=True)
    (kept / "sizes").write_text(f"{(1 << 30) - 100}\n")  # almost all that is kept
    names = (
        "lock",
        "log",
        "metrics.csv",
        "old/deep/model",
        "read",
        "replaced",
        "runs.db",
        "weights.pt",
    )
    for name in names:
        (room / name).write_text("" if name == "runs.db" else name)
        os.utime(room / name, ns=(1, 1_000_000_001))
    (room / "log").chmod(0o640)
    (room / "large").write_text("x" * 100)
    (room / "latest").symlink_to("a")
    program = tmp_path / "code" / "program.py"
    program.parent.mkdir()
    program.write_text(WRITING)
    environment = {**os.environ, KEPT: str(kept), "ROOM": str(room)}
    for _ in range(2):
        command = (sys.executable, str(program))
        result = run_program(command, (), Extent(), environment=environment, timeout=300)
        assert result.failure == ""
    beside = tmp_path / "code" / "beside"
    after = {each.path: each.state for each in put_back(kept, room, beside.parent)}
    assert after == AFTER | {str(beside): "removed"}
    assert not beside.exists()
    for name in names:
        assert (room / name).read_text() == ("" if name == "runs.db" else name)
        assert (room / name).stat().st_mtime_ns == 1_000_000_001
    assert (room / "log").stat().st_mode & 0o777 == 0o640
    assert str((room / "latest").readlink()) == "a"
    assert not (room / "made").exists()
    assert not (room / "runs").exists()
    assert (room / ".cache" / "models" / "made").exists()  # whole, as others may read it
    assert {each.state for each in put_back(kept, room)} == {"changed"}


LOGGING = """
import os, sqlite3
from pathlib import Path
base = sqlite3.connect(DATABASE)
for number in range(200):
    base.execute("insert into runs values (?, ?)", (number, "x" * 3000))
    base.commit()
os._exit(0)
"""


@pytest.mark.parametrize(
    ("place", "database", "mode"),
    [
        ("room", "Path('{0}')", "wal"),
        ("room", "'file:{0}?mode=rw', uri=True", "persist"),
        ("elsewhere", "'{0}'", "wal"),
    ],
)
def test_a_database_that_runs_wrote_to_is_as_before(
    tmp_path: Path, place: str, database: str, mode: str
) -> None:
    """With what SQLite keeps beside it, which would be replayed on what is put back."""
    kept, path = tmp_path / "trial" / "kept", tmp_path / place / "runs.db"
    for folder in (kept, tmp_path / "room", tmp_path / "elsewhere"):
        folder.mkdir(parents=True)
    base = sqlite3.connect(path)
    base.execute(f"pragma journal_mode={mode}")
    base.execute("create table runs(number, text)")
    base.executemany("insert into runs values (?, ?)", [(n, "y" * 3000) for n in range(50)])
    base.commit()
    base.close()
    program = tmp_path / "room" / "program.py"
    program.write_text(LOGGING.replace("DATABASE", database.format(path)))
    for _ in range(2):
        environment = {**os.environ, KEPT: str(kept)}
        command = (sys.executable, str(program))
        result = run_program(command, (), Extent(), environment=environment, timeout=300)
        assert result.failure == ""
    put_back(kept, tmp_path / "room")
    assert_whole(path, 50)


def assert_whole(path: Path, rows: int) -> None:
    base = sqlite3.connect(path)
    assert base.execute("pragma integrity_check").fetchall() == [("ok",)]
    found = base.execute("select count(*), max(text) from runs").fetchall()
    assert found == [(rows, "y" * 3000)]
    base.close()


def test_a_database_that_another_program_has_open_is_left(tmp_path: Path) -> None:
    """What that writes goes on from where it is."""
    kept, path = tmp_path / "trial" / "kept", tmp_path / "runs.db"
    kept.mkdir(parents=True)
    base = sqlite3.connect(path)
    base.execute("pragma journal_mode=wal")
    base.execute("create table runs(number, text)")
    base.executemany("insert into runs values (?, ?)", [(n, "y" * 3000) for n in range(50)])
    base.commit()
    program = tmp_path / "program.py"
    program.write_text(LOGGING.replace("DATABASE", repr(str(path))))
    before = listed(tmp_path, but=kept)
    environment = {**os.environ, KEPT: str(kept)}
    command = (sys.executable, str(program))
    result = run_program(command, (), Extent(), environment=environment, timeout=300)
    assert result.failure == ""
    states = {each.path: each.state for each in put_back(kept, tmp_path, before=before)}
    assert states["runs.db-wal"] == "changed"
    base.execute("insert into runs values (50, 'y')")
    base.commit()
    base.close()
    assert_whole(path, 251)


ROTATING = """
import os, shutil
shutil.rmtree("before", ignore_errors=True)
if os.path.exists("models"):
    os.rename("models", "before")
os.makedirs("models/deep")
for name in ("models/last", "models/deep/first"):
    open(name, "w").write("other")
"""


@pytest.mark.parametrize("names", [("models", "before"), ("models",), ()])
def test_folders_that_are_renamed_have_their_files_again(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    room, kept = tmp_path / "room", tmp_path / "trial" / "kept"
    for folder in (room, kept, *(room / name / "deep" for name in names)):
        folder.mkdir(parents=True)
    for name in names:
        (room / name / "last").write_text(name)
        (room / name / "deep" / "first").write_text(f"{name} first")
    before = {path: path.is_file() and path.read_text() for path in room.rglob("*")}
    program = tmp_path / "program.py"
    program.write_text(f"import os\nos.chdir({str(room)!r})\n{ROTATING}")
    for _ in range(3):
        environment = {**os.environ, KEPT: str(kept)}
        command = (sys.executable, str(program))
        result = run_program(command, (), Extent(), environment=environment, timeout=300)
        assert result.failure == ""
    assert {each.state for each in put_back(kept, room)} <= {"as before", "removed"}
    assert {path: path.is_file() and path.read_text() for path in room.rglob("*")} == before


def test_what_cannot_be_put_back_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tmp_path / "room"
    saved = Path(f"{tmp_path}/kept{room}/metrics.csv")
    saved.parent.mkdir(parents=True)
    saved.write_text("mine")
    room.write_text("no folder any more")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (row,) = put_back(tmp_path, tmp_path)
    assert (row.path, row.state) == ("room/metrics.csv", "changed")
    assert Path(row.copy).read_text() == "mine"
    assert room.read_text() == "no folder any more"


def test_what_is_new_elsewhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    for name in ("shared/result", "temporary/part", "home/.cache/model", "here/.cache/part"):
        for path in (tmp_path / name, Path(f"{tmp_path}/trial/new{tmp_path}/{name}")):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    (row,) = put_back(tmp_path / "trial", tmp_path / "here")
    assert (row.path, row.state) == (str(tmp_path / "shared/result"), "new")
    assert (tmp_path / "shared/result").exists()


LINKING = """
import os, subprocess
os.makedirs(".checkpoints", exist_ok=True)
open(".checkpoints/last", "w").close()
for name, link in (("latest", os.symlink), ("best", os.link)):
    if os.path.lexists(name):
        os.remove(name)
    link(".checkpoints/last", name)
subprocess.run("echo theirs > vocabulary; echo new > trace; rm -f table", shell=True)
if not os.path.samefile("data", "snapshot"):
    os.remove("snapshot")
    os.link("data", "snapshot")
"""


def test_links_and_hidden_folders_go_and_what_nobody_heard_is_named(tmp_path: Path) -> None:
    for name in ("vocabulary", "table", "data", "snapshot"):
        (tmp_path / name).write_text(f"my {name}")
    words = ("--switch", "no-change", "--budget", "60s", "--format", "json")
    stdout, _ = cli(tmp_path, *words, program=LINKING).communicate(timeout=300)
    rows = {row["path"]: row for row in json.loads(stdout)["written"]}
    removed = {path for path, row in rows.items() if row["state"] == "removed"}
    assert removed == {".checkpoints/last", "latest", "best"}
    after = {"program.py", "vocabulary", "trace", "data", "snapshot"}
    assert {each.name for each in tmp_path.iterdir()} == after
    assert rows["trace"]["state"] == "new"
    for name in ("vocabulary", "table"):
        assert rows[name]["state"] == "changed"
        assert Path(rows[name]["copy"]).read_text() == f"my {name}"
    for name in ("data", "snapshot"):  # one is no other name of the other any more
        assert (tmp_path / name).read_text() == f"my {name}"
    shutil.rmtree(rows["table"]["copy"].partition(str(tmp_path))[0])


def test_folders_of_a_home_are_left_though_it_is_behind_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, link = tmp_path / "data" / "user", tmp_path / "home"
    (home / ".config").mkdir(parents=True)
    link.symlink_to(tmp_path / "data")
    monkeypatch.setenv("HOME", str(link / "user"))
    new = Path(f"{tmp_path}/trial/new{home}/.config/settings")
    new.parent.mkdir(parents=True)
    for path in (new, home / ".config" / "settings"):
        path.touch()
    for folder in (home, home.parent):
        put_back(tmp_path / "trial", folder)
        assert (home / ".config" / "settings").exists()


def test_other_names_of_a_file_are_put_back_too(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("changed")
    second.hardlink_to(first)
    status = first.stat()
    saved, inode = (Path(f"{tmp_path}/trial/{kind}{first}") for kind in ("kept", "inodes"))
    for each in (saved, inode):
        each.parent.mkdir(parents=True)
    saved.write_text("mine")
    inode.symlink_to(f"{status.st_dev}:{status.st_ino}")
    assert [each.state for each in put_back(tmp_path / "trial", tmp_path)] == ["as before"]
    assert (first.read_text(), second.read_text()) == ("mine", "mine")


def test_a_failed_trial_leaves_files_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("mine")
    program = "open('metrics.csv', 'w'); open('made', 'w'); raise ValueError('no data')"
    _, stderr = cli(tmp_path, program=program).communicate(timeout=300)
    assert "Put back as before: metrics.csv. New, and removed: made." in stderr
    assert not (tmp_path / "made").exists()
    assert (tmp_path / "metrics.csv").read_text() == "mine"


def test_a_folder_of_the_user_stays_when_a_new_file_of_it_goes(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    program = "import os; os.makedirs('checkpoints/1'); open('checkpoints/1/last', 'w'); 1 / 0"
    cli(tmp_path, program=program).communicate(timeout=300)
    assert list((tmp_path / "checkpoints").iterdir()) == []


@pytest.mark.parametrize("copied", [True, False])
def test_the_answer_names_what_was_written(tmp_path: Path, *, copied: bool) -> None:
    (tmp_path / "room").mkdir()
    outside, inside = tmp_path / "outside", tmp_path / "room" / "inside"
    outside.write_text("mine")
    inside.write_text("mine")
    program = f"import time; time.sleep(0.05)\nfor path in ({str(outside)!r}, 'inside'):\n"
    program += "    with open(path, 'a') as file: file.write('more')\n"
    words = ["--switch", "no-change", "--budget", "60s", "--format", "json"]
    process = cli(tmp_path / "room", *words, *["--in-copy"] * copied, program=program)
    trial = json.loads(process.communicate(timeout=300)[0])
    paths = [str(outside)] if copied else ["inside", str(outside)]
    states = {each["path"]: each["state"] for each in trial["written"]}
    assert states == dict.fromkeys(paths, "as before")
    assert (outside.read_text(), inside.read_text()) == ("mine", "mine")


def test_where_profkit_prints_to_is_no_file_of_runs(tmp_path: Path) -> None:
    output = os.dup(1)
    try:
        os.dup2(os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT), 1)
        before = listed(tmp_path, but=tmp_path / "trial")
        os.write(1, b"progress")
        (tmp_path / "other").touch()
        rows = put_back(tmp_path / "trial", tmp_path, before=before)
    finally:
        os.dup2(output, 1)
    assert [(each.path, each.state) for each in rows] == [("other", "new")]
