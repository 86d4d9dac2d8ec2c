"""Stands in for the process that measures roofs on a GPU: answers as it does, of a made H200."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from profkit.core.errors import TargetFailed
from profkit.timing.worker import main

GPU = {"name": "NVIDIA H200", "uuid": "GPU-aaaa-0", "multiprocessors": 132, "mig": False}
MACHINE = {"cc": (9, 0), "sm_count": 132, "l2_bytes": 60 << 20, "memory_bytes": 150_000_000_000}
RATES = {"dram": (4.1e12, 4.3e12), "l2": (4.2e12,), "tensor_fp16": (1.2e15,), "fp32": (60e12,)}
SLOWER = 0.9  # a steady load, of a burst's rate
BURST = {"sm_clock": 1.98e9, "power": 200.0, "temperature": 50.0, "throttled_by": []}
STEADY = {
    "sm_clock": 1.7e9, "power": 690.0, "temperature": 60.0, "throttled_by": ["software power cap"],
}  # fmt: skip


class Made:
    def __init__(self, started: float) -> None:
        self.started = started

    def open(self, seed: int) -> dict[str, Any]:
        assert seed == 42
        return {"machine": MACHINE, "fingerprint": {"gpu": GPU, "versions": {"torch": "2.11"}}}

    def measure(self, name: str) -> dict[str, Any]:
        if name == "fp64":
            raise TargetFailed("wrong result from multiply_add.cu", "no rate of it can be believed")
        if name not in RATES:
            return {"left_out": "its tensor cores have no such type"}
        return {"loads": [load(f"way {at}", rate) for at, rate in enumerate(RATES[name])]}


def load(method: str, rate: float) -> dict[str, Any]:
    return {
        "method": method,
        "amount": rate * 1e-3,
        "samples": samples(1e-3),
        "moments": [BURST],
        "steady_samples": samples(1e-3 / SLOWER),
        "steady_moments": [STEADY],
    }


def samples(seconds: float) -> list[float]:
    """Of two blocks, around a time."""
    noise = np.random.default_rng(1).uniform(-1e-4, 1e-4, 80)
    around: list[float] = (seconds * (1 + noise - np.median(noise))).tolist()
    return around


if __name__ == "__main__":
    main(sys.argv[1:], Made)
