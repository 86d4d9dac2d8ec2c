"""A known difference: a kernel that waits, and the same one waiting 1, 2 and 5% longer.

    profkit time targets/delay.py --compare base,two_percent

shows whether a comparison finds on this machine what is there.
"""

from __future__ import annotations

from functools import partial

from profkit import Target, Unsupported, Variant, normal_inputs

CYCLES = 200_000


def wait(cycles, inputs):
    import torch

    if not inputs["a"].is_cuda:
        raise Unsupported("the waiting kernel needs a CUDA device")
    torch.cuda._sleep(cycles)
    return inputs["a"]


longer = {"base": 0, "one_percent": 1, "two_percent": 2, "five_percent": 5}
target = Target(
    name="delay",
    shapes={"cycles": CYCLES},
    dtype="float32",
    inputs=lambda device, seed: normal_inputs(device, seed, "float32", a=(1,)),
    reference=lambda inputs: inputs["a"],
    variants=[
        Variant(name, partial(wait, CYCLES * (100 + more) // 100)) for name, more in longer.items()
    ],
)

if __name__ == "__main__":
    target.main()
