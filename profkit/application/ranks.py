"""The ranks of a program: processes that collectives join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.application.programs import joined
from profkit.application.steps import Steps, rank_order
from profkit.timeline.events import Events
from profkit.ui.text import plural


@dataclass(frozen=True)
class Ranks:
    """The ranks of the program on the first GPU.

    `steps` are those of all ranks, `first` of the first one; `apart` are of processes that no
    collective joins with it.
    """

    first: Steps
    steps: tuple[Steps, ...]
    apart: tuple[Steps, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said of other processes than these: nothing, and why."""
        reasons = ((self.apart, "which no recorded collective joins with it: record them apart"),)
        return tuple(
            f"Findings are of the program on GPU {self.first.device}, not of "
            f"{plural(len(others), 'other process')} (GPU "
            f"{', '.join(str(each.device) for each in others)}), {why}"
            for others, why in reasons
            if others
        )


def ranks_of(events: Events, steps: Sequence[Steps]) -> Ranks:
    """The ranks of the program on the first GPU, of the steps of all processes. Raises ValueError
    without steps."""
    if not steps:
        raise ValueError("no steps of any process")
    in_order = sorted(steps, key=rank_order)
    program = joined(events).get(in_order[0].process, {in_order[0].process})
    apart = tuple(each for each in in_order if each.process not in program)
    members = tuple(each for each in in_order if each.process in program)
    return Ranks(members[0], members, apart)
