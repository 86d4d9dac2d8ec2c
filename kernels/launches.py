"""Every named pair, and `ladder`, once under a profiler: `python -m kernels.launches NAME...`

Each target marks its own profiled region; around it is an NVTX range of the target's name, so that
a launch's ranges are TARGET/VARIANT.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from kernels import pair
from profkit import Target
from profkit.capture.environment import lock
from profkit.capture.target import load_target

LADDER = "ladder"
LADDER_TARGET = Path("targets/attention_ladder.py")
LEFT_OUT = "math"  # fourteen kernels of torch's, which sdpa_s512 has
SEED = 42


def target_of(name: str) -> Target:
    """The pair of this name, or the ladder, as a target."""
    return load_target(LADDER_TARGET) if name == LADDER else pair.read(name).target()


def variants_of(name: str) -> tuple[str, ...]:
    """The variants that are recorded of it."""
    variants = (variant.name for variant in target_of(name).variants)
    return tuple(variant for variant in variants if variant != LEFT_OUT)


def main(names: Sequence[str]) -> None:
    """Run the named targets once each."""
    import torch

    lock(SEED)
    for name in names:
        with torch.cuda.nvtx.range(name):
            target_of(name).run_once("cuda", SEED, variants_of(name))
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(sys.argv[1:])
