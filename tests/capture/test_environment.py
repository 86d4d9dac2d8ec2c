"""What is locked, what is put on record, and what never is."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profkit.capture import environment
from profkit.core.errors import EnvironmentProblem
from profkit.core.typed_file import plain

torch = pytest.importorskip("torch", reason="the target side needs torch")


@pytest.fixture(autouse=True)
def unlocked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give back what lock() changes for the whole process."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", environment.WORKSPACE)
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    state = random.getstate()
    yield
    random.setstate(state)
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


def test_lock_takes_effect() -> None:
    environment.lock(7)
    first = random.random(), torch.rand(3)
    environment.lock(7)
    assert random.random() == first[0]
    assert torch.equal(torch.rand(3), first[1])
    flags = environment.flags()
    assert not flags["tf32_matmul"]
    assert not flags["tf32_cudnn"]
    assert not flags["fill_new_memory"]
    assert flags["deterministic_algorithms"]


def test_locking_imports_no_compiler_and_one_imported_later_is_locked_too() -> None:
    script = (
        "import sys; from profkit.capture.environment import lock; lock(1); "
        "print('torch._inductor' in sys.modules); "
        "import torch._inductor.config as config; print(config.deterministic)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_what_did_not_take_effect_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "set_deterministic_debug_mode", lambda _: None)
    monkeypatch.setattr(torch, "manual_seed", lambda _: None)
    with pytest.raises(EnvironmentProblem, match="deterministic_algorithms, seed of torch"):
        environment.lock(123_456)


@pytest.mark.parametrize(
    ("name", "value"), [("CUBLAS_WORKSPACE_CONFIG", ":16:8"), ("NVIDIA_TF32_OVERRIDE", "1")]
)
def test_a_variable_that_unlocks_is_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(EnvironmentProblem, match=f"unset {name}"):
        environment.lock(1)


def test_the_workspace_must_be_set_before_cuda_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with pytest.raises(EnvironmentProblem, match="before CUBLAS_WORKSPACE_CONFIG was set"):
        environment.lock(1)


def test_a_seed_out_of_range_is_refused() -> None:
    with pytest.raises(EnvironmentProblem, match="out of range"):
        environment.lock(-1)


def test_fingerprint_is_stable_and_has_nothing_private(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", "/home/planted-user")
    monkeypatch.setenv("TORCH_API_TOKEN", "planted-secret")
    monkeypatch.setenv("TRITON_CACHE_DIR", "/scratch/planted-folder")
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:/scratch/planted-path")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    found = environment.fingerprint(tmp_path, dtype="float16")
    text = json.dumps(plain(found))
    assert "planted" not in text
    assert str(tmp_path) not in text
    variables = found.variables or {}
    assert variables["PYTORCH_CUDA_ALLOC_CONF"] == "(a path)"
    assert variables["CUDA_VISIBLE_DEVICES"] == "3"
    assert (found.versions or {})["torch"] == torch.__version__
    assert found.commit is None
    again = environment.fingerprint(tmp_path, dtype="float16")
    assert environment.digest(found) == environment.digest(again)


def test_digest_depends_on_values_and_not_on_order() -> None:
    first = environment.digest({"a": 1, "b": [True, None]})
    assert first == environment.digest({"b": [True, None], "a": 1})
    assert first != environment.digest({"a": 2, "b": [True, None]})
    assert len(first) == 64


def test_commit_and_what_it_does_not_hold(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True)

    git("init", "-q")
    target = tmp_path / "targets" / "x.py"
    target.parent.mkdir()
    target.write_text("1\n")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    clean = environment.commit(target.parent)
    assert clean is not None
    assert len(str(clean["commit"])) == 40
    assert clean["dirty"] is False
    (tmp_path / "elsewhere").write_text("a run that was just recorded")
    assert environment.commit(target.parent) == clean
    (target.parent / "new.py").write_text("not in the commit")
    assert environment.commit(target.parent) == clean | {"dirty": True}
