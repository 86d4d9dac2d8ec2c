"""Quantities for rules about a timeline: the region from the first GPU work to the end of the last.

This time is the sum of four parts: GPU busy, only host-device copies, short gaps and long gaps.
The time before the first work (setup) and after the last is excluded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from profkit.core.yaml_files import shipped_yaml
from profkit.timeline import cuda_calls

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from profkit.timeline.events import Events
    from profkit.timeline.intervals import Cover
    from profkit.timeline.work import Work

SHORT_GAP = 100e-6
"""Seconds of the longest gap that launch overhead alone may cause: a launch takes the host 2 to
10 µs, an operation of an eager framework several times that."""

QUANTITIES: Mapping[str, tuple[str, str]]
"""By name: unit and meaning."""
PARTS: Mapping[str, str]
"""The parts of the region's time that a fix may eliminate."""
_TEXTS, _PARTS = shipped_yaml("profkit.timeline", "region.yaml").values()
_SHORT_GAP = f"{SHORT_GAP * 1e6:.0f} µs"
QUANTITIES = {
    name: (unit, meaning.format(short_gap=_SHORT_GAP)) for name, (unit, meaning) in _TEXTS.items()
}
PARTS = {name: words.format(short_gap=_SHORT_GAP) for name, words in _PARTS.items()}

_HOST_COPIES = {"host to device", "device to host", "host to array", "array to host"}
_HOST: Mapping[str, tuple[str, ...]] = {
    "gap_allocation_share": (cuda_calls.ALLOCATION,),
    "gap_copy_call_share": (cuda_calls.COPY,),
    "gap_wait_share": (cuda_calls.SYNCHRONIZATION,),
    "gap_other_call_share": (cuda_calls.LAUNCH, cuda_calls.OTHER),
}
"""Quantities of the host's time in long gaps, by kinds of calls; the first one counts."""


def measure(events: Events) -> Mapping[str, float]:
    """The quantities of a timeline; none without GPU work.

    Those of kernels or copies are NaN without any.
    """
    import numpy as np

    from profkit.timeline.intervals import length, union
    from profkit.timeline.times import NS, spread
    from profkit.timeline.work import MEMORY, gaps_before, work_of

    work = work_of(events)
    span = float(work.end.max() - work.start[0]) / NS if len(work) else 0.0
    if not span > 0:
        return {}
    copies, calls = events.memory_operations, events.calls
    of_host = _chosen(copies.kind, [kind.kind in _HOST_COPIES for kind in events.memory_kinds])
    other = np.ones(len(work), np.bool_)
    is_copy = work.table == MEMORY
    other[is_copy] = ~of_host[work.row[is_copy]]
    busy = length(union(work.start, work.end))
    without = length(union(work.start[other], work.end[other]))
    gaps = gaps_before(work.start, work.end)
    is_long = gaps > SHORT_GAP * NS
    ends = work.start[is_long]
    host = _host_in(events, work, (ends - gaps[is_long], ends))
    gaps = gaps[gaps > 0]
    is_short = gaps <= SHORT_GAP * NS
    short, long = spread(gaps[is_short]), spread(gaps[~is_short])
    inside = (calls.end > work.start[0]) & (calls.start < work.end.max())
    numbers = np.bincount(calls.name[inside], minlength=len(events.call_names))
    called: Counter[str] = Counter()
    for called_name, number in zip(events.call_names, numbers.tolist(), strict=True):
        called[cuda_calls.call_kind(called_name)] += number
    copying = length(union(copies.start[of_host], copies.end[of_host])) / NS
    sizes = copies.size[of_host]
    pageable = _chosen(
        copies.kind[of_host],
        ["pageable" in {kind.source, kind.target} for kind in events.memory_kinds],
    )
    copied = sum(sizes.tolist())
    every = spread(gaps)
    return {
        "gpu_span": span,
        "gpu_busy_share": min(1.0, busy / NS / span),
        "short_gap_share": short.total / span,
        "long_gap_share": long.total / span,
        "host_copy_share": max(0.0, busy / NS - without / NS) / span,
        "short_gaps": short.count,
        "long_gaps": long.count,
        **{name: time / NS / span for name, time in host.items()},
        "gap_median": every.median,
        "gap_longest": every.high,
        "kernel_launches": len(events.kernels),
        "kernel_median": spread(events.kernels.end - events.kernels.start).median,
        "synchronizing_calls": called[cuda_calls.SYNCHRONIZATION],
        "allocating_calls": called[cuda_calls.ALLOCATION],
        "host_copies": len(sizes),
        "host_copy_bytes": copied,
        "host_copy_bandwidth": copied / copying if copying else math.nan,
        "pageable_share": sum(sizes[pageable].tolist()) / copied if copied else math.nan,
    }


def _host_in(events: Events, work: Work, gaps: Cover) -> dict[str, float]:
    """Nanoseconds of gaps by what the threads that submit work did; NaN where no call is known."""
    import numpy as np

    from profkit.timeline import intervals

    calls = events.calls
    submitting = np.zeros(len(events.threads) + 1, np.bool_)
    submitting[calls.thread[work.call[work.call >= 0]]] = True
    spent: dict[str, float] = {}
    taken = intervals.NOTHING
    for name, own in _HOST.items():
        chosen = [cuda_calls.call_kind(called) in own for called in events.call_names]
        rows = np.flatnonzero(_chosen(calls.name, chosen) & submitting[calls.thread])
        cover = intervals.common(gaps, intervals.union(calls.start[rows], calls.end[rows]))
        spent[name] = intervals.length(intervals.without(cover, taken))
        taken = intervals.either(taken, cover)
    spent["gap_host_code_share"] = intervals.length(gaps) - intervals.length(taken)
    known = bool((work.call >= 0).any())
    return spent if known else dict.fromkeys(spent, math.nan)


def _chosen(indices: npt.NDArray[np.int32], flags: Sequence[bool]) -> npt.NDArray[np.bool_]:
    """The flag of each index."""
    import numpy as np

    return np.array(flags, np.bool_)[indices]
