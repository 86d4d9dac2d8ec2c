"""Stands in for the process that times a target on a GPU: sleeps, and answers with made samples.

Variables: PROFKIT_STAND_IN_SECONDS (of a shape), _NODE (the machine; else every process has a GPU
of its own), _DRIVER (by which GPUs differ), _VERSION (of backends), _CRASH (values of n at which
it ends), _SHAPES (after so many a process waits without end), _LOG (a file that gets a line a
measured shape: n, process, start and end by the monotonic clock).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from profkit.capture.environment import digest
from profkit.timing.worker import main


def setting(name: str, default: str = "") -> str:
    return os.environ.get(f"PROFKIT_STAND_IN_{name}", default)


def gpu() -> dict[str, Any]:
    node = setting("NODE") or f"process-{os.getpid()}"
    return {
        "name": "NVIDIA H200",
        "uuid": f"GPU-{node}-{os.environ.get('CUDA_VISIBLE_DEVICES', '0')}",
        "compute_capability": "9.0",
        "multiprocessors": 132,
        "memory_bytes": 150_000_000_000,
        "driver": setting("DRIVER", "580.1"),
        "power_limit": 700.0,
    }


def target(arguments: list[str], variants: list[str]) -> dict[str, Any]:
    n = int(arguments[arguments.index("--n") + 1])
    work = {"flop": 1e9 * n, "bytes": 1e6 * n, "what": f"n={n}"}
    return {
        "name": "made",
        "shapes": {"n": n},
        "dtype": "float16",
        "work": work,
        "variants": variants,
    }


class Made:
    def __init__(self, _: float) -> None:
        self.blocks = self.n = self.left = self.variants = 0
        self.sleeps = True
        self.opened, self.shapes = 0.0, 0

    def declare(self, arguments: list[str], **_: Any) -> dict[str, Any]:
        about = {
            "version": setting("VERSION", "made 1"),
            "unavailable": "",
            "setting": "",
            "chosen": None,
        }
        return {"target": target(arguments, ["a", "b"]), "variants": {"a": about, "b": about}}

    def where(self, **_: Any) -> dict[str, Any]:
        return {"device": "cuda", "fingerprint": {"gpu": gpu()}}

    def open(self, arguments: list[str], variants: list[str], **_: Any) -> Any:
        self.opened = time.monotonic()
        variants = variants or ["a"]
        described = target(arguments, variants)
        self.n, self.variants = described["shapes"]["n"], len(variants)
        self.left = 8 + 7 if self.variants == 1 else 8 * self.variants  # 7: between the blocks
        self.sleeps = True
        if str(self.n) in setting("CRASH").split(","):
            os._exit(3)
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        surroundings = {
            "gpu": gpu(),
            "versions": {"torch": "2.11"},
            "variables": {"CUDA_VISIBLE_DEVICES": visible},
        }
        return {
            "target": described,
            "device": "cuda",
            "checks": [{"name": name, "status": "passed"} for name in variants],
            "variants": {name: {"chosen": None} for name in variants},
            "fingerprint": surroundings,
            "fingerprint_sha256": digest(surroundings),
            "spans": {"imports": 0.0, "check": 0.0, "inputs": 0.0},
        }

    def prepare(self, **_: Any) -> dict[str, Any]:
        return {"rough": 1e-4, "host": 1e-6, "empty": 0.0, "flush": 0.0, "steady": True}

    def block(self, variant: str, samples: int, **_: Any) -> dict[str, Any]:
        """The first of a shape takes all of its time."""
        self.blocks += 1
        self.left -= 1
        if self.sleeps:
            self.sleeps, self.shapes = False, self.shapes + 1
            hangs = self.shapes > int(setting("SHAPES", "1000000"))
            time.sleep(3600 if hangs else float(setting("SECONDS", "0.02")))
        random = np.random.default_rng([self.n, self.blocks, os.getpid()])
        slower = 1.01 if os.environ.get("CUDA_VISIBLE_DEVICES", "").endswith("1") else 1.0
        values = (
            slower * 1e-6 * self.n * (1 + 0.5 * (variant == "b")) * random.normal(1, 0.01, samples)
        )
        if not self.left and setting("LOG"):
            line = f"{self.n} {os.getpid()} {self.opened:.6f} {time.monotonic():.6f}\n"
            with Path(setting("LOG")).open("ab", buffering=0) as log:
                log.write(line.encode())
        return {
            "turn": 0,
            "seconds": float(values.sum()) + 1e-4,
            "overtaken": 0,
            "sm_clock": 1.98e9,
            "gpu": None,
            "samples": values.tolist(),
        }


if __name__ == "__main__":
    main(sys.argv[1:], Made)
