"""Copies of batches as programs write them."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402
from torch.utils.data._utils import pin_memory  # noqa: E402

from profkit.trial.switches import loading  # noqa: E402


def test_a_batch_may_be_copied_with_all_its_arguments_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for holder, name in (
        (torch.Tensor, "to"), (torch.Tensor, "cuda"), (DataLoader, "__init__"),
        (pin_memory, "pin_memory"),
    ):  # fmt: skip
        monkeypatch.setattr(holder, name, getattr(holder, name))
    loading.pinned_memory(SimpleNamespace(torch=torch, applied=str))
    batch = torch.ones(2)
    batch._is_of_loader = True
    assert batch.to("cpu", torch.float64, True).dtype == torch.float64
    assert batch.to(torch.float64, non_blocking=True).dtype == torch.float64
    assert batch.to("cpu", torch.float16).dtype == torch.float16
