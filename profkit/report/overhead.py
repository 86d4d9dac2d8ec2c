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
_PREDICATES = ("P", "UP")


def overhead_share(samples: Samples) -> float:
    """Executed integer, conversion and control instructions that no stored value rests on, of all
    executed; NaN where nothing was."""
    operations = samples.flow.operations
    total = sum(samples.executed(place) for place in range(len(operations)))
    if not total:
        return math.nan
    stored = _stored(samples)
    overhead = sum(
        samples.executed(place)
        for place, operation in enumerate(operations)
        if CLASS_OF.get(operation.base) in _OVERHEAD and place not in stored
    )
    return overhead / total


def _stored(samples: Samples) -> set[int]:
    """The instructions that stored values rest on, up to what was loaded."""
    flow = samples.flow
    found: set[int] = set()
    for place, operation in enumerate(flow.operations):
        if operation.base in _STORES and samples.executed(place):
            values = [name for name in _values(operation) if name not in operation.addresses]
            found.update(flow.sources(place, values, None, _unless_loaded))
    return found


def _unless_loaded(operation: Operation) -> Sequence[str]:
    return () if operation.base in _LOADS else _values(operation)


def _values(operation: Operation) -> Sequence[str]:
    """What an instruction reads, without the predicates: those say whether, not what."""
    return [name for name in operation.reads if not name.startswith(_PREDICATES)]
