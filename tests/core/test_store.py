"""Locks and drafts among processes that can't see each other: other users, containers, hosts."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from profkit.capture.doctor import diagnose
from profkit.core.errors import BadInput, EnvironmentProblem
from profkit.core.lock import file_lock, gpu_lock
from profkit.recording import recording as profiling
from profkit.runs import run as runs
from profkit.runs.manifest import Manifest
from profkit.runs.run import draft, free_room
from profkit.study.folder import held

_NOBODY = 65534


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user who may not write what belongs to this one."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which every user may make files."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o1777)
        monkeypatch.setenv("PROFKIT_LOCK_DIR", folder)
        yield Path(folder)


def lock_file(folder: Path) -> Path:
    return folder / "profkit-gpu-GPU-1.lock"


def refusal() -> str:
    """Why the lock can't be had; "" when it can."""
    try:
        with gpu_lock("GPU-1"):
            return ""
    except EnvironmentProblem as error:
        return str(error)


def test_a_lock_that_another_user_made_is_held_all_the_same(shared: Path) -> None:
    assert refusal() == ""  # imports what a user without rights may be unable to read
    lock_file(shared).write_text("77\n")
    lock_file(shared).chmod(0o444)
    with without_rights():
        with gpu_lock("GPU-1"):
            assert refusal().startswith("GPU GPU-1 is being measured by process 77")
        assert refusal() == ""


def test_every_user_may_write_a_lock(shared: Path) -> None:
    with gpu_lock("GPU-1"):
        assert lock_file(shared).stat().st_mode & 0o777 == 0o666
        assert lock_file(shared).read_text() == f"{os.getpid()}\n"


def test_a_lock_ends_though_a_process_that_is_just_starting_has_a_copy(shared: Path) -> None:
    with gpu_lock("GPU-1"):
        (held,) = (
            int(entry.name)
            for entry in Path("/proc/self/fd").iterdir()
            if entry.is_symlink() and entry.readlink() == lock_file(shared)
        )
        copy = os.dup(held)
    assert refusal() == ""
    os.close(copy)


def test_a_lock_that_can_not_be_had_is_named(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precious = shared / "precious"
    precious.write_text("text")
    lock_file(shared).symlink_to(precious)
    assert f"{lock_file(shared)}: can't be locked" in refusal()
    assert precious.read_text() == "text"
    monkeypatch.setenv("PROFKIT_LOCK_DIR", str(shared / "none"))
    assert "No such file" in refusal()


def test_a_lock_does_not_depend_on_the_temporary_folder(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gpu_lock("GPU-1"):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr(tempfile, "tempdir", None)
        assert "by another thread of this process" in refusal()
        lock_file(shared).write_text("")  # as between taking it for the first time and saying so
        assert "by another process or thread" in refusal()
    assert list(shared.iterdir()) == [lock_file(shared)]


@pytest.mark.parametrize("name", ["", ".lock"])
def test_a_folder_and_a_file_are_locked_once(tmp_path: Path, name: str) -> None:
    def hold() -> None:
        with file_lock(tmp_path / name, "taken"):
            pass

    with file_lock(tmp_path / name, "free"), pytest.raises(EnvironmentProblem, match="taken; wait"):
        hold()
    hold()
    descriptor = os.open(tmp_path / name, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(EnvironmentProblem, match="taken"):
            hold()
    finally:
        os.close(descriptor)


def test_a_study_is_written_by_one_process(tmp_path: Path) -> None:
    def second() -> None:
        with held(tmp_path / "study"):
            pass

    with held(tmp_path / "study"):
        left = tmp_path / "study" / "cells" / ".n2.quick.json.part"
        left.touch()
        with pytest.raises(EnvironmentProblem, match="another process writes this baseline"):
            second()
        assert left.exists()
    second()
    assert not left.exists()


def test_a_live_draft_of_another_machine_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: (1 << 22) + 1)
    with draft(tmp_path, "toy") as live:
        monkeypatch.undo()
        with draft(tmp_path, "toy") as other:
            assert live.folder.is_dir()
            assert other.folder.is_dir()
        assert not other.folder.exists()
    assert not live.folder.exists()


def test_an_abandoned_draft_goes(tmp_path: Path) -> None:
    left = tmp_path / "toy" / f".partial-{os.getpid()}-20200101T000000Z-abcdef"
    left.mkdir(parents=True)
    (left / ".lock").touch()
    beginning = left.with_name(".partial-20200101T000000Z-aaaaaa")
    beginning.mkdir()
    ancient = left.with_name(".partial-20200101T000000Z-bbbbbb")
    ancient.mkdir()
    os.utime(ancient, (0, 0))
    with (left / ".lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with draft(tmp_path, "toy"):
            assert left.is_dir()
    with draft(tmp_path, "toy"):
        assert not left.exists()
        assert beginning.is_dir()
        assert not ancient.exists()


def test_a_kept_run_has_no_lock(tmp_path: Path) -> None:
    with draft(tmp_path, "toy") as made:
        (made.folder / "file").write_text("text")
        kept = runs.keep(made, Manifest())
    assert {file.name for file in kept.iterdir()} == {"file", "manifest.json"}
    assert set(runs.verify(kept).files) == {"file"}


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"stages": [{"name": "ncu", "seconds": None}]}, "seconds"),
        ({"stages": [3]}, "stages"),
        ({"files": {"file": {}}}, "bytes"),
        ({"files": {"file": {"bytes": "2", "sha256": "0"}}}, "bytes"),
        ({"warnings": "one"}, "warnings"),
    ],
)
def test_a_damaged_manifest_is_one_line(tmp_path: Path, part: dict[str, object], told: str) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": "profkit.run/1"} | part))
    with pytest.raises(BadInput, match=told) as caught:
        runs.read_manifest(tmp_path)
    assert "manifest.json" in str(caught.value)
    assert "restore it" in str(caught.value)


def test_a_folder_that_can_not_be_looked_into_is_passed_over() -> None:
    diagnose(Path())  # what it imports may be for this user's eyes only
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        closed = Path(name) / "closed"
        (closed / "out").mkdir(parents=True)
        closed.chmod(0)
        Path(name).chmod(0o755)
        with without_rights():
            assert free_room(closed / "out")[0] in {closed, Path(name)}
            checks = {check.name: check for check in diagnose(closed / "out").checks}
        closed.chmod(0o755)
    assert "GiB free" in checks["disk"].state


def test_a_full_disk_is_the_environment_s_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(profiling, "check_room", full)
    monkeypatch.setenv("PROFKIT_NCU", "true")
    plan = profiling.Plan(("true",), out=tmp_path / "runs")
    with pytest.raises(EnvironmentProblem, match="runs: No space left on device; free disk space"):
        profiling.profile(plan, lambda *_: None)
