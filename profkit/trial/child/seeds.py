"""Seeds the generators of numpy and torch, so that runs of a program that doesn't can be compared.

Any Python from 3.9 on loads this file as a hook of these modules, without profkit. Processes that
the program starts are not seeded, but for the ranks of a launcher: each of them draws its own
numbers. PROFKIT_SEEDED is the number of the first one, and PROFKIT_SEEDED_RANK that of a rank, or 0
for a program that needs others in each run.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def install(module: Any) -> None:
    """Seed a generator right after its import, which the program may do again, where this process
    was the first when it started, with `sys`, or the first of its rank."""
    own, rank = str(os.getpid()), os.environ.get("RANK", "")
    name = "PROFKIT_SEEDED_RANK" if rank.isdigit() else "PROFKIT_SEEDED"
    if os.environ.setdefault(name, own) == own and module is not sys:
        seed = getattr(module, "manual_seed", None) or module.seed
        seed(int(rank or 0))
