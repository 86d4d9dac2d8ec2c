"""Launches of Triton kernels with other constants, and what they are launched with."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_DEFAULTS = {"num_warps": 4, "num_stages": 3}  # of Triton on NVIDIA GPUs


@contextmanager
def launched(values: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Triton kernels launched meanwhile get these constants where they have them; gives those that
    they were launched with."""
    seen: dict[str, int] = {}
    module = sys.modules.get("triton.runtime.jit")
    if module is None:
        yield seen
        return
    kind = module.JITFunction
    original = kind.run

    def run(function: Any, *arguments: Any, **named: Any) -> Any:
        constants = {each.name for each in function.params if each.is_constexpr}
        given = dict(zip(function.arg_names, arguments, strict=False)) | named
        seen.update(_DEFAULTS)
        for name in constants | _DEFAULTS.keys():
            if type(given.get(name)) is int:
                seen[name] = given[name]
        changed = [
            values.get(name, value) if name in constants else value
            for name, value in zip(function.arg_names, arguments, strict=False)
        ]
        own = {*constants, *_DEFAULTS} - {*function.arg_names[: len(arguments)]}
        other = {name: value for name, value in values.items() if name in own}
        return original(function, *changed, *arguments[len(changed) :], **{**named, **other})

    kind.run = run
    try:
        yield seen
    finally:
        kind.run = original
