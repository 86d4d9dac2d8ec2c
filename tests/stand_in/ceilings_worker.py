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


def load(how: str, rate: float) -> dict[str, Any]:
    return {
        "how": how,
        "amount": rate * 1e-3,
        "bursts": blocks(1e-3, BURST),
        "steady": blocks(1e-3 / SLOWER, STEADY),
    }


def blocks(seconds: float, gpu: dict[str, Any]) -> list[dict[str, Any]]:
    """Two blocks of samples around a time, one of them without an NVML reading."""
    noise = np.random.default_rng(1).uniform(-1e-4, 1e-4, 80)
    samples = (seconds * (1 + noise - np.median(noise))).tolist()
    block = {"started": 0.0, "seconds": 0.1, "overtaken": 0}
    return [
        {**block, "samples": samples[:40], "gpu": gpu},
        {**block, "samples": samples[40:], "gpu": None},
    ]


if __name__ == "__main__":
    main(sys.argv[1:], Made)
