"""Baselines: kept whole by name and GPU, checked when they are read."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.comparison import saved_reports as baselines
from profkit.core.errors import BadInput, EnvironmentProblem, UsageError
from profkit.core.regular_file import digest
from tests.conftest import H200

PAIR = H200 / "pairs" / "transpose_conflicts"
H = "NVIDIA H200"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".profkit" / "baselines"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run: a report, its latencies, its check, what else lies there, and a manifest of all."""
    folder = tmp_path / "reports" / "transpose" / "20260101T000000Z-abcdef"
    folder.mkdir(parents=True)
    shutil.copy(PAIR / "before.ncu-repz", folder / "transpose.ncu-repz")
    shutil.copy(PAIR / "latency.json", folder / "latency.json")
    (folder / "check.json").write_text("{}", encoding="utf-8")
    (folder / "timeline.sqlite").write_bytes(b"not kept")
    files = {file.name: {"sha256": digest(file)} for file in folder.iterdir()}
    told = {"schema": "profkit.run/1", "files": files}
    (folder / "manifest.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


def test_a_report_is_found_again_as_it_was(root: Path) -> None:
    saved = baselines.save("main", PAIR / "before.ncu-repz", H, root)
    found = baselines.find("main", H, root)
    assert found == saved
    assert found.name == "before.ncu-repz"
    assert digest(found) == digest(PAIR / "before.ncu-repz")


def test_a_run_keeps_its_manifest_check_and_latencies(root: Path, run: Path) -> None:
    for given in (run, run / "transpose.ncu-repz"):
        found = baselines.save("main", given, H, root)
        assert found.name == "transpose.ncu-repz"
        names = {file.name for file in found.parent.iterdir()}
        assert names == {"transpose.ncu-repz", "manifest.json", "check.json", "latency.json"}
        assert digest(found.parent / "manifest.json") == digest(run / "manifest.json")


def test_several_reports_lie_as_they_did(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "two"
    for name in ("a/x.ncu-repz", "b/x.ncu-repz"):
        (folder / name).parent.mkdir(parents=True)
        shutil.copy(PAIR / "before.ncu-repz", folder / name)
    found = baselines.save("main", folder, H, root)
    assert found.is_dir()
    assert sorted(file.relative_to(found).as_posix() for file in found.rglob("*.ncu-repz")) == [
        "a/x.ncu-repz",
        "b/x.ncu-repz",
    ]


def test_saving_again_replaces_the_old_one_whole(root: Path, run: Path) -> None:
    first = baselines.save("main", run, H, root)
    second = baselines.save("main", PAIR / "after.ncu-repz", H, root)
    assert baselines.find("main", H, root) == second
    assert not first.exists()
    assert not (second.parent / "check.json").exists()


def test_one_of_each_gpu(root: Path) -> None:
    baselines.save("main", PAIR / "before.ncu-repz", H, root)
    baselines.save("main", PAIR / "after.ncu-repz", "NVIDIA L4", root)
    assert baselines.find("main", H, root).name == "before.ncu-repz"
    assert baselines.find("main", "NVIDIA L4", root).name == "after.ncu-repz"


def test_an_absent_baseline_is_reported(root: Path) -> None:
    baselines.save("main", PAIR / "before.ncu-repz", H, root)
    with pytest.raises(BadInput, match=r"no baseline main of NVIDIA L4 in .*; save one"):
        baselines.find("main", "NVIDIA L4", root)


@pytest.mark.parametrize("name", ["feature/x", "..", "../../etc", "", "a" * 65, ".hidden", "a\nb"])
def test_a_name_stays_in_its_folder(root: Path, name: str) -> None:
    asked: tuple[Callable[[], object], ...] = (
        lambda: baselines.save(name, PAIR / "before.ncu-repz", H, root),
        lambda: baselines.find(name, H, root),
    )
    for ask in asked:
        with pytest.raises(UsageError) as caught:
            ask()
        assert "use main" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not root.exists()


@pytest.mark.parametrize("gpu", ["../../x", "", "NVIDIA GeForce RTX 4090 / Laptop", "\0"])
def test_any_gpu_name_is_one_folder(root: Path, gpu: str) -> None:
    saved = baselines.save("main", PAIR / "before.ncu-repz", gpu, root)
    assert saved.parent.parent.parent == root / "main"
    assert baselines.find("main", gpu, root) == saved


def test_a_changed_or_missing_file_is_noticed(root: Path, run: Path) -> None:
    found = baselines.save("main", run, H, root)
    whole = found.read_bytes()
    found.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(BadInput, match="changed since it was saved; save the baseline again"):
        baselines.find("main", H, root)
    found.write_bytes(whole)
    (found.parent / "latency.json").unlink()
    with pytest.raises(BadInput, match=r"latency\.json: missing from the baseline"):
        baselines.find("main", H, root)


@pytest.mark.parametrize(
    "index",
    [
        "",
        "[]",
        "{}",
        '{"schema": "profkit.kept-baseline/1", "name": "main", "gpu": "g", "saved": "2026-01-01",'
        ' "folder": "../..", "reports": ["x"], "files": {"x": {"bytes": 1, "sha256": ""}}}',
        '{"schema": "profkit.kept-baseline/1", "name": "main", "gpu": "g", "saved": "2026-01-01",'
        ' "folder": "a", "reports": ["/etc/passwd"],'
        ' "files": {"/etc/passwd": {"bytes": 1, "sha256": ""}}}',
    ],
)
def test_an_invalid_index_is_reported(root: Path, index: str) -> None:
    saved = baselines.save("main", PAIR / "before.ncu-repz", H, root)
    (saved.parent.parent / "baseline.json").write_text(index, encoding="utf-8")
    with pytest.raises(BadInput, match=r"baseline\.json: .*; save the baseline again"):
        baselines.find("main", H, root)
    assert baselines.save("main", PAIR / "after.ncu-repz", H, root).name == "after.ncu-repz"


def test_a_save_that_fails_leaves_the_old_one(root: Path, run: Path) -> None:
    old = baselines.save("main", PAIR / "before.ncu-repz", H, root)
    (run / "latency.json").write_text("changed since", encoding="utf-8")
    with pytest.raises(BadInput, match="SHA-256 differs"):
        baselines.save("main", run, H, root)
    assert baselines.find("main", H, root) == old
    with pytest.raises(BadInput, match="no such file"):
        baselines.save("main", run / "absent.ncu-repz", H, root)


def test_what_a_killed_save_left_is_no_baseline_and_goes(root: Path) -> None:
    left = root / "main" / "NVIDIA_H200" / "0123456789ab"
    left.mkdir(parents=True)
    (left / "half.ncu-repz").write_bytes(b"half")
    with pytest.raises(BadInput, match="no baseline main"):
        baselines.find("main", H, root)
    baselines.save("main", PAIR / "before.ncu-repz", H, root)
    assert not left.exists()


def test_two_saves_at_once_are_one_after_the_other(root: Path) -> None:
    saved = baselines.save("main", PAIR / "before.ncu-repz", H, root)
    with (saved.parent.parent / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(EnvironmentProblem, match="another process is saving"):
            baselines.save("main", PAIR / "after.ncu-repz", H, root)
    assert baselines.find("main", H, root) == saved


def test_a_folder_that_cant_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(EnvironmentProblem, match="can't be written"):
        baselines.save("main", PAIR / "before.ncu-repz", H, tmp_path / "file")
