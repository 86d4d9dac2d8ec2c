"""Host work: where the host computes for long without any call, on data or on results.

Time between two launches is that of issuing them, up to some ms: work on data is before data is
copied to the GPU, or before or after the host waits.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.application.replay import LONG_GAP, Call, Replay, Work
from profkit.core.grouping import grouped
from profkit.timeline.cuda_calls import SMALL_COPY, TO_DEVICE
from profkit.timeline.work import Mask

_NO_LAUNCH = 5e6
"""ns that issuing one launch does not take, chosen: JAX without jit takes 0.3 ms an operation."""


class HostCalls(Struct, frozen=True, eq=False):
    """Calls of a host thread in order: ns of host time before each, the bytes that it `sends` to
    the GPU, whether it `submits` other work, waits by its name, and `waited`."""

    gap: npt.NDArray[np.float64]
    sends: npt.NDArray[np.int64]
    submits: Mask
    waits: Mask
    waited: Mask

    @property
    def copies(self) -> Mask:
        """Whether data is copied: more than some values, in one call or several in a row."""
        row = np.cumsum(self.submits)
        together = np.bincount(row, self.sends)
        copies: Mask = (self.sends > 0) & (together[row] > SMALL_COPY)
        return copies

    @property
    def counts(self) -> Mask:
        return self.submits | self.copies | self.waits

    @property
    def of_work(self) -> Mask:
        """Whether the time before it is long, and on data or results, not of issuing launches:
        data is copied next, or the host waits next, or waited last, or it is too long for that."""
        last = np.append(False, self.waited[self.counts])
        following = np.append((self.copies | self.waits)[self.counts], False)
        place: npt.NDArray[np.int64] = np.cumsum(self.counts) - self.counts
        is_on = (following | last)[place] & (self.gap > LONG_GAP)
        work: Mask = (is_on | (self.gap > _NO_LAUNCH)) & (place < len(last) - 1)
        return work


class HostWork(Struct, frozen=True):
    """Host work before the call at `index`; `waits` are the calls directly before it in which the
    host waited. `on_results`: it is on what the host then read, not on data that is copied to the
    GPU next."""

    index: int
    waits: tuple[Call, ...]
    on_results: bool


def host_work(replay: Replay) -> list[HostWork]:
    """The host work of replayed steps."""
    lanes = grouped((call.lane, index) for index, call in enumerate(replay.calls))
    return [work for own in lanes.values() for work in _of_lane(replay, own)]


def _of_lane(replay: Replay, own: Sequence[int]) -> Iterator[HostWork]:
    """The host work of a thread; its first calls follow the last, as steps are repeated."""
    calls = [replay.calls[index] for index in own]
    works = [[replay.works[index] for index in call.works] for call in calls]
    columns = (
        [call.gap for call in calls],
        [sum(each.size for each in some if each.direction == TO_DEVICE) for some in works],
        [any(each.direction != TO_DEVICE for each in some) for some in works],
        [call.role == "wait" for call in calls],
        [is_synchronization(call, replay.works) for call in calls],
    )
    sequence = HostCalls(*(np.tile(column, 3) for column in columns))
    copied, counting = sequence.copies, np.flatnonzero(sequence.counts)
    for place in np.flatnonzero(sequence.of_work).tolist():
        if not len(own) <= place < 2 * len(own):
            continue
        following = int(np.searchsorted(counting, place))
        before = [int(each) for each in counting[:following][::-1][: len(own)]]
        waits = tuple(
            calls[each % len(own)]
            for each in takewhile(lambda each: bool(sequence.waited[each]), before)
        )
        copies = bool(copied[counting[following]])
        yield HostWork(own[place % len(own)], waits, bool(waits) and not copies)


def is_pageable(work: Work) -> bool:
    """Whether a copy takes long because of pageable memory."""
    return work.role == "copy" and work.pageable and work.size > SMALL_COPY


def is_data(work: Work, call: Call) -> bool:
    """Whether the host waits for a copy of pageable memory, not for what the GPU does before it."""
    is_long = 2 * work.duration > call.end - call.start
    return is_pageable(work) and (work.direction == TO_DEVICE or is_long)


def is_synchronization(call: Call, works: Sequence[Work]) -> bool:
    """Whether a call has the host wait: one that says so, or a copy that blocks, but for data."""
    if call.role == "wait":
        return True
    has_data = any(is_data(works[index], call) for index in call.works)
    return call.role == "copy" and bool(call.wait) and not has_data
