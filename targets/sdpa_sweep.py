"""Attention at a shape from the command line: --batch 2 --heads 16 --length 2048 --causal ..."""

from __future__ import annotations

import argparse

from sdpa import ELEMENT_BYTES, Shape, attention

options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
options.add_argument("--batch", type=int, default=8, metavar="B")
options.add_argument("--heads", type=int, default=16, metavar="H")
options.add_argument("--length", type=int, default=1024, metavar="S")
options.add_argument("--dim", type=int, default=64, metavar="D")
options.add_argument("--dtype", choices=tuple(ELEMENT_BYTES), default="float16")
options.add_argument("--causal", action="store_true")

asked = options.parse_known_args()[0]
sizes = {"batch": asked.batch, "heads": asked.heads, "length": asked.length, "dim": asked.dim}
for name, size in sizes.items():
    if size < 1:
        options.error(f"--{name} must be at least 1, not {size}")

target = attention("sdpa_sweep", Shape(**sizes, dtype=asked.dtype, causal=asked.causal))

if __name__ == "__main__":
    target.main(options=options)
