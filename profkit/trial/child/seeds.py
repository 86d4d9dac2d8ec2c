"""Seeds the generators of numpy and torch, so that runs of a program that doesn't can be compared.

Any Python from 3.9 on loads this file as a hook of these modules, without profkit.
"""

from __future__ import annotations

from typing import Any


def install(module: Any) -> None:
    """Seed a generator right after its import, which the program may do again."""
    seed = getattr(module, "manual_seed", None) or module.seed
    seed(0)
