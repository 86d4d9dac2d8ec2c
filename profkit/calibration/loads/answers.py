"""What the process that measures roofs answers (`profkit.calibration.loads.worker`)."""

from msgspec import Struct

from profkit.calibration.loads.counts import Machine
from profkit.capture.gpu import Moment
from profkit.core.fingerprint import Fingerprint


class Located(Struct, frozen=True):
    """The GPU that it measures."""

    machine: Machine
    fingerprint: Fingerprint


class Measured(Struct, frozen=True):
    """A load as it was timed: seconds a call, the GPU at the start of each block of samples.

    `samples` and `moments` are of bursts after pauses, those of `steady` of a load that had been
    on for long; empty where it was not. `amount` is what a call moves or computes, `method` says in
    words what was called.
    """

    method: str
    amount: float
    samples: tuple[float, ...]
    moments: tuple[Moment, ...]
    steady_samples: tuple[float, ...] = ()
    steady_moments: tuple[Moment, ...] = ()


class Loads(Struct, frozen=True):
    """The loads that may reach a roof; `left_out` is the reason where none can run, else ""."""

    loads: tuple[Measured, ...] = ()
    left_out: str = ""
