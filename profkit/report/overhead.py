"""How much of a kernel's work computes nothing that is stored, by its machine code.

Integer instructions are indices and loop counters, or the algorithm itself: a hash, a random
number, a table of integers. The latter's results end in a stored value, by registers all the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profkit.report.blame import Samples
from profkit.report.resources import CLASS_OF, opcodes

if TYPE_CHECKING:
    from profkit.report.sass_text import Operation

_OVERHEAD = frozenset({"integer", "conversion", "control"})
_LOADS, _STORES = opcodes("loads"), opcodes("stores")


def overhead_share(samples: Samples) -> float:
    """Executed integer, conversion and control instructions that no stored value rests on, of all
    executed; NaN where nothing was."""
    flow = samples.flow
    operations = [
        (place, step, samples.executed(place)) for place, step in enumerate(flow.operations)
    ]
    total = sum(times for _, _, times in operations)
    stored: set[int] = set()
    for place, step, times in operations:
        if step.base in _STORES and times:
            values = [name for name in _values(step) if name not in step.addresses]
            stored.update(flow.sources(place, values, None, _unless_loaded))
    overhead = (
        times
        for place, step, times in operations
        if CLASS_OF.get(step.base) in _OVERHEAD and place not in stored
    )
    return sum(overhead) / total if total else math.nan


def _unless_loaded(operation: Operation) -> Sequence[str]:
    return () if operation.base in _LOADS else _values(operation)


def _values(operation: Operation) -> Sequence[str]:
    """What an instruction reads, without the predicates: those say whether, not what."""
    return [name for name in operation.reads if not name.startswith(("P", "UP"))]
