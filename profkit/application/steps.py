"""The steps of an application in steady state, without imports, warm-up and autotuning."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.timeline.events import Times


@dataclass(frozen=True, eq=False)
class Steps:
    """Steady-state steps of one process, on the clock of the recording, in ns.

    Step i is [bounds[i], bounds[i+1]) of GPU time: from the first GPU work that it submits to that
    of the next; `call_bounds` are the starts of the calls that submitted that work. `before` are
    the steps (`unit` "steps") or launches (`unit` "launches") left out as warm-up, `why` their
    reason.
    """

    process: int
    device: int
    bounds: Times
    call_bounds: Times
    how: str
    before: int
    unit: str
    why: str

    def __len__(self) -> int:
        return len(self.bounds) - 1
