"""Answers what a timing process answers (`profkit.timing.worker`), for callables of this process.

So a callable is timed by the same code as a target's variant: warm-up, groups, blocks, statistics
and verdicts are those of `profkit time`. Nothing is locked here: TF32, determinism and seeds are
what the program has set, and the fingerprint records them.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from profkit.callables.examination import Invocation
from profkit.callables.surroundings import Surroundings
from profkit.capture.correctness import Declared, Verdict
from profkit.capture.environment import digest
from profkit.core.typed_file import T, convert
from profkit.timing.latency_format import Recorded
from profkit.timing.loaded import Loaded
from profkit.timing.stopwatch import Cache, Ready, Settings, Timer
from profkit.timing.stopwatches import Stopwatches, TimedCall
from profkit.timing.worker import watch


@dataclass
class CallableTimekeeper:
    """Times callables of this process by their names.

    `declaration` lacks the variants; `folder` is that of the file that defines them. `around` is
    what makes the work seen.
    """

    calls: Sequence[Invocation]
    declaration: Declared
    environment: Surroundings
    around: Callable[[], AbstractContextManager[object]]
    checks: Sequence[Verdict] = ()
    folder: Path | None = None

    def __post_init__(self) -> None:
        self._calls = {
            call.name: TimedCall(call.direct, self.around, self.environment.wait)
            for call in self.calls
        }
        self._stopwatches: Stopwatches

    def ask(self, do: str, model: type[T], **arguments: Any) -> T:
        """The answer to "open", "prepare" or "block"; raises also what a call raises."""
        return convert(getattr(self, do)(**arguments), model)

    def open(self, **_: Any) -> Loaded:
        """What the callables are and where they run."""
        started = time.perf_counter()
        device = self.environment.device
        with self.around():
            surroundings = self.environment.fingerprint(self.folder)
        self._stopwatches = Stopwatches(device, watch(surroundings) if device == "cuda" else None)
        return Loaded(
            target=structs.replace(self.declaration, variants=tuple(self._calls)),
            device=device,
            checks=tuple(self.checks),
            variants={},
            fingerprint=surroundings,
            fingerprint_sha256=digest(surroundings),
            spans={"imports": time.perf_counter() - started, "check": 0.0, "inputs": 0.0},
        )

    def prepare(self, variant: str, timer: str, cache: str, warmup: float, group: int) -> Ready:
        """Warm a callable up."""
        settings = Settings(Timer(timer), Cache(cache), warmup, group)
        return self._stopwatches.prepare(variant, self._calls[variant], settings)

    def block(self, variant: str, samples: int, host: float) -> Recorded:
        """Take a block of samples."""
        return self._stopwatches.block(variant, samples, host)
