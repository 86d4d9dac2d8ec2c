"""The ranks of a program: processes that collectives join, and the steps that they do together."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from profkit.application.nccl_calls import joined
from profkit.application.steps import Steps, rank_order
from profkit.timeline.events import Events
from profkit.ui.text import plural

_ALIKE = 0.9  # share of steps, chosen: almost all
_FEWEST = 2  # steps, of which one is replayed after the other


class Ranks(Struct, frozen=True):
    """The ranks of the program on the first GPU.

    `steps` are those that all ranks do together, as many of each; `first` are all of the first
    rank's. `apart` are of processes that no collective joins with it, `unlike` of ranks that do
    fewer than two of its steps.
    """

    first: Steps
    steps: tuple[Steps, ...]
    apart: tuple[Steps, ...] = ()
    unlike: tuple[Steps, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Processes and ranks left out, and the reason."""
        notes = []
        if self.apart:
            notes.append(
                f"Findings are of the program on GPU {self.first.device}, not of "
                f"{_counted(self.apart, 'other process')}, which no recorded collective joins with "
                "it: record them apart"
            )
        if self.unlike:
            notes.append(
                f"Findings leave out {_counted(self.unlike, 'rank')}, with other steps than GPU "
                f"{self.first.device} or fewer than two of the same"
            )
        return tuple(notes)


def _counted(steps: Sequence[Steps], name: str) -> str:
    devices = ", ".join(str(each.device) for each in steps)
    return f"{plural(len(steps), name)} (GPU {devices})"


def ranks_of(events: Events, steps: Sequence[Steps]) -> Ranks:
    """The ranks of the program on the first GPU, of the steps of all processes. Raises ValueError
    without steps."""
    if not steps:
        raise ValueError("no steps of any process")
    in_order = sorted(steps, key=rank_order)
    program = joined(events).get(in_order[0].process, {in_order[0].process})
    apart = tuple(each for each in in_order if each.process not in program)
    members = [each for each in in_order if each.process in program]
    first = next((each for each in members if len(each) >= _FEWEST), members[0])
    offsets = {first.process: 0}
    low, high = 0, len(first)
    for each in members:
        offset = _offset(first, each)
        if each is first or offset is None:
            continue
        begin, end = max(low, offset), min(high, offset + len(each))
        if end - begin >= min(_FEWEST, len(first)):
            offsets[each.process], low, high = offset, begin, end
    together = tuple(
        _between(each, low - offsets[each.process], high - offsets[each.process])
        for each in members
        if each.process in offsets
    )
    unlike = tuple(each for each in members if each.process not in offsets)
    return Ranks(first, together, apart, unlike)


def _offset(first: Steps, other: Steps) -> int | None:
    """Which step of the first rank another's first step is, before it if negative; None where they
    are no steps of about the same times."""
    bounds = first.bounds.astype(np.float64)
    usual = float(np.median(np.diff(bounds)))
    around = np.concatenate([[bounds[0] - usual], bounds, [bounds[-1] + usual]])
    inside = (other.bounds >= around[0]) & (other.bounds <= around[-1])
    if inside.sum() < _FEWEST:
        return None
    places = np.interp(other.bounds[inside], around, np.arange(-1, len(around) - 1))
    shifts = places - np.flatnonzero(inside)
    middle = np.median(shifts)
    if (np.abs(shifts - middle) < 0.5).mean() < _ALIKE:  # of a step: longer ones drift
        return None
    return round(float(middle))


def _between(steps: Steps, low: int, high: int) -> Steps:
    return replace(
        steps,
        bounds=steps.bounds[low : high + 1],
        call_bounds=steps.call_bounds[low : high + 1],
        typical=steps.typical[low:high],
    )
