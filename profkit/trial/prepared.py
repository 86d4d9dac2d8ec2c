"""A program that has imported its libraries once, of which each run is a fork."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from profkit.capture import process
from profkit.core.atomic_file import write_atomic

_POLLED = 0.005  # s, chosen: a thousandth of a run


class Plan(Struct, frozen=True):
    """What a run is to do: record in `folder` until there are `units` of a `unit`, or a `window` of
    seconds and `grace` more, perturbed or not; `switches` are hooks, `features` are of the first
    run. A fork ends after `timeout` seconds.
    """

    folder: str
    unit: str | None
    units: int
    window: float | None
    perturb: str
    switches: tuple[tuple[str, str, str], ...]
    timeout: float
    grace: float = 0.0
    features: frozenset[str] = frozenset()

    def write(self, path: Path) -> None:
        write_atomic(path, msgspec.json.encode(self).decode())


class Prepared:
    """The program, started and stopped where it imports torch (`child.forks`), in a folder `place`.

    `environment` are its variables, with hooks; `modules` are imported in it; `changed` are the
    variables that a fresh run changed after that; `importing` is the module that imports torch,
    which is then imported before it. Raises EnvironmentProblem where the program can't be started.
    """

    def __init__(
        self,
        place: Path,
        command: Sequence[str],
        environment: Mapping[str, str],
        modules: Sequence[str],
        changed: Sequence[str],
        importing: str = "",
    ) -> None:
        self.place = place
        self.culprit = ""  # the package whose import is the fault
        self.seconds = 0.0  # how long its imports took
        self.add(modules, changed)
        if importing:  # whose modules are not whole where torch is
            environment = {**environment, "PROFKIT_EARLY": f"{importing}=torch"}
        self._started = time.time()
        with (place / "before").open("wb") as before:
            self._process = process.start(command, environment, output=before)

    def add(self, modules: Sequence[str], changed: Sequence[str]) -> None:
        """Have more modules imported, as a run has shown them."""
        (self.place / "ready").unlink(missing_ok=True)
        names = {"modules": modules, "changed": changed}
        write_atomic(self.place / "modules", json.dumps(names))

    @property
    def fault(self) -> str | None:
        """Why it can't be forked, "" where it can, None as long as that is not known."""
        has_ended, ready = self._process.poll() is not None, self.place / "ready"
        if not ready.exists():
            return "it has ended before" if has_ended else None
        said = json.loads(ready.read_text("utf-8"))
        self.culprit = said["package"]
        self.seconds = self.seconds or max(ready.stat().st_mtime - self._started, 0.0)
        is_child = said["parent"] == self._process.pid
        return said["fault"] or ("" if is_child else "another program starts it")

    def run(self, plan: Plan) -> process.Finished:
        """A run by a plan; exit status 124 after its time."""
        started = time.monotonic()
        output, end = self.place / "output", self.place / "end"
        output.unlink(missing_ok=True)
        plan.write(self.place / "plan")
        while not end.exists() and self._process.poll() is None:
            time.sleep(_POLLED)
        status = json.loads(end.read_text("utf-8")) if end.exists() else 1
        end.unlink(missing_ok=True)
        text = output.read_text("utf-8", "replace") if output.exists() else ""
        return process.Finished(status, time.monotonic() - started, text)

    def discard(self) -> None:
        """End it, and all of it."""
        process.end(self._process)
        shutil.rmtree(self.place, ignore_errors=True)
