"""What Python does beside the device: its garbage collector, generation."""

from __future__ import annotations

import gc
from itertools import count
from typing import Any

_COLLECTED_AFTER = 3  # steps, chosen: what these have made stays


def gc_frozen(program: Any) -> None:
    """Objects that the first steps have made are no longer looked at by the garbage collector."""
    steps = count(1)

    def freeze() -> None:
        if next(steps) == _COLLECTED_AFTER:
            gc.collect()
            gc.freeze()
            program.applied("gc-frozen")

    def passed(module: Any, args: Any, kwargs: Any) -> Any:
        freeze()
        return args, kwargs

    program.on_step.append(freeze)
    program.changes.append(passed)


def static_kv_cache(program: Any) -> None:
    """`generate` keeps keys and values in memory of a fixed size, and compiles its steps."""

    def changed(kwargs: Any) -> Any:
        if not {"cache_implementation", "past_key_values"} & kwargs.keys():
            program.applied("static-kv-cache")
            return {**kwargs, "cache_implementation": "static"}
        return kwargs

    program.generation.append(changed)
