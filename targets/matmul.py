"""A matrix product, 4096 by 4096 by 4096 unless the command line says otherwise."""

from __future__ import annotations

import argparse

from profkit import Target, Variant, Work, asked, normal_inputs

ELEMENT_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4}

options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
for letter, what in (("m", "rows of A"), ("n", "columns of B"), ("k", "columns of A")):
    options.add_argument(f"--{letter}", type=int, default=4096, help=what)
options.add_argument("--dtype", choices=tuple(ELEMENT_BYTES), default="float16")

shape = asked(options)
m, n, k, dtype = shape.m, shape.n, shape.k, shape.dtype
if min(m, n, k) < 1:
    options.error("--m, --n and --k must be at least 1")


def matmul(inputs):
    return inputs["a"] @ inputs["b"]


def transposed(inputs):
    """B is read as the transpose of a matrix that lies column after column."""
    return inputs["a"] @ inputs["b_columns"].t()


def inputs(device, seed):
    tensors = normal_inputs(device, seed, dtype, a=(m, k), b=(k, n))
    return tensors | {"b_columns": tensors["b"].t().contiguous()}


target = Target(
    name="matmul",
    shapes={"m": m, "n": n, "k": k},
    dtype=dtype,
    work=Work.gemm(m, n, k, element_bytes=ELEMENT_BYTES[dtype]),
    inputs=inputs,
    reference=lambda inputs: inputs["a"] @ inputs["b"],
    variants=[Variant("matmul", matmul), Variant("transposed", transposed)],
)

if __name__ == "__main__":
    target.main(options=options)
