"""Copies of batches as programs write them."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, dataloader  # noqa: E402
from torch.utils.data._utils import pin_memory  # noqa: E402

from profkit.trial.switches import loading  # noqa: E402


def test_a_batch_may_be_copied_with_all_its_arguments_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for holder, name in (
        (torch.Tensor, "to"), (torch.Tensor, "cuda"), (DataLoader, "__init__"),
        (pin_memory, "pin_memory"), (dataloader._MultiProcessingDataLoaderIter, "__init__"),
    ):  # fmt: skip
        monkeypatch.setattr(holder, name, getattr(holder, name))
    loading.pinned_memory(SimpleNamespace(torch=torch, applied=str))
    batch = torch.ones(2)
    batch._is_of_loader = True
    assert batch.to("cpu", torch.float64, True).dtype == torch.float64
    assert batch.to(torch.float64, non_blocking=True).dtype == torch.float64
    assert batch.to("cpu", torch.float16).dtype == torch.float16


ENDING = """
import atexit
from types import SimpleNamespace

import torch
from torch.utils.data import DataLoader, dataloader

from profkit.trial.switches import loading

iterators = dataloader._MultiProcessingDataLoaderIter
begin = iterators.__init__


def begun(batches, loader):
    begin(batches, loader)
    for worker in batches._workers:  # as torch before 2.13 does, which waits for 5 s
        atexit.register(lambda worker=worker: print("runs:", worker.is_alive()))


iterators.__init__ = begun
loading.pinned_memory(SimpleNamespace(torch=torch, applied=str))
loader = DataLoader([1.0, 2.0], num_workers=2, persistent_workers=True)
print("sum:", sum(map(float, loader)))
"""


def test_workers_that_stay_have_ended_when_torch_waits_for_them() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ENDING], capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == ["sum: 3.0", "runs: False", "runs: False"]
    assert not run.stderr
