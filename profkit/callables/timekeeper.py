"""Answers what a timing process answers (`profkit.timing.worker`), for callables of this process.

So a callable is timed by the same code as a target's variant: warm-up, groups, blocks, statistics
and verdicts are those of `profkit time`. Nothing is locked here: TF32, determinism and seeds are
what the program has set, and the fingerprint records them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profkit.callables.examination import Invocation
from profkit.callables.surroundings import Surroundings
from profkit.capture.correctness import Verdict
from profkit.capture.environment import digest
from profkit.capture.work import Work
from profkit.core.typed_file import plain
from profkit.timing.stopwatch import Cache, Settings, Timer
from profkit.timing.stopwatches import Stopwatches, TimedCall
from profkit.timing.worker import watch


@dataclass(frozen=True)
class Declaration:
    """What is known of callables: shapes and type of their arguments, their work, and the folder
    of the file that defines them."""

    name: str
    shapes: Mapping[str, Any]
    dtype: str
    work: Work | None
    folder: Path | None = None

    def described(self, variants: Sequence[str]) -> dict[str, Any]:
        """As a target's declaration has it."""
        return {
            "name": self.name,
            "shapes": dict(self.shapes),
            "work": plain(self.work) if self.work else None,
            "variants": list(variants),
        } | ({"dtype": self.dtype} if self.dtype else {})


class CallableTimekeeper:
    """Times callables of this process by their names."""

    def __init__(
        self,
        calls: Sequence[Invocation],
        declaration: Declaration,
        environment: Surroundings,
        around: Callable[[], AbstractContextManager[object]],
        checks: Sequence[Verdict],
    ) -> None:
        self._calls = {
            call.name: TimedCall(call.direct, around, environment.wait) for call in calls
        }
        self._declaration = declaration
        self._environment = environment
        self._around = around
        self._checks = checks
        self._stopwatches: Stopwatches

    def ask(self, do: str, **arguments: Any) -> Any:
        """The answer to "open", "prepare" or "block"; raises also what a call raises."""
        return getattr(self, do)(**arguments)

    def open(self, **_: Any) -> Mapping[str, Any]:
        """What the callables are and where they run."""
        started = time.perf_counter()
        device = self._environment.device
        with self._around():
            surroundings = self._environment.fingerprint(self._declaration.folder)
        self._stopwatches = Stopwatches(device, watch(surroundings) if device == "cuda" else None)
        return {
            "target": self._declaration.described(list(self._calls)),
            "device": device,
            "checks": [plain(check) for check in self._checks],
            "variants": {},
            "fingerprint": surroundings,
            "fingerprint_sha256": digest(surroundings),
            "spans": {"imports": time.perf_counter() - started, "check": 0.0, "inputs": 0.0},
        }

    def prepare(self, variant: str, timer: str, cache: str, warmup: float, group: int) -> Any:
        """Warm a callable up; see `profkit.timing.stopwatch.Ready`."""
        settings = Settings(Timer(timer), Cache(cache), warmup, group)
        return self._stopwatches.prepare(variant, self._calls[variant], settings)

    def block(self, variant: str, samples: int, host: float) -> Any:
        """Take a block of samples; see `profkit.timing.stopwatch.Block`."""
        return self._stopwatches.block(variant, samples, host)
