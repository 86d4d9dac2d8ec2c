"""A training step of a small network in JAX: dispatched operation by operation, or compiled.

python targets/apps/jax_step.py --steps 30 --variant before
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
from loop import Program, option_parser, run

options = option_parser(__doc__)
options.add_argument("--mode", choices=("operations", "jit"), default="operations")
options.add_argument("--layers", type=int, default=8)
options.add_argument("--width", type=int, default=1024)
options.add_argument("--batch", type=int, default=256)


def start(asked):
    keys = jax.random.split(jax.random.PRNGKey(asked.seed), asked.layers)
    shape = (asked.width, asked.width)
    return [
        {"weight": jax.random.normal(key, shape) / asked.width**0.5, "bias": jnp.zeros(asked.width)}
        for key in keys
    ]


def updated(parameters, x, wanted):
    """Parameters after a step of gradient descent, the gradients written out layer by layer."""
    values = [x]
    for layer in parameters:
        values.append(jnp.tanh(values[-1] @ layer["weight"] + layer["bias"]))
    gradient = 2 * (values[-1] - wanted) / wanted.size
    changed = []
    for layer, given, result in zip(parameters[::-1], values[-2::-1], values[:0:-1], strict=True):
        gradient = gradient * (1 - result * result)
        changed.append(
            {
                "weight": layer["weight"] - 0.1 * (given.T @ gradient),
                "bias": layer["bias"] - 0.1 * gradient.sum(0),
            }
        )
        gradient = gradient @ layer["weight"].T
    return changed[::-1]


def build(asked):
    if asked.toy:
        asked.layers, asked.width, asked.batch = 2, 16, 4
    state = {"parameters": start(asked)}
    first, second = jax.random.split(jax.random.PRNGKey(asked.seed + 1))
    x = jax.random.normal(first, (asked.batch, asked.width))
    wanted = jnp.tanh(jax.random.normal(second, (asked.batch, asked.width)))
    train = jax.jit(updated) if asked.mode == "jit" else updated

    def step():
        state["parameters"] = train(state["parameters"], x, wanted)

    return Program(step, lambda: jax.block_until_ready(state["parameters"]))


if __name__ == "__main__":
    run("jax_step", options, build, fix=("--mode", "jit"))
