"""Small torch programs, each run in a fork of one process that has imported torch."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from profkit.trial.prepared import Prepared
from profkit.trial.run import Extent, Perturbation, Result, hooked_environment, run_program
from profkit.trial.switch import Switch, all_switches

SWITCHES = {switch.name: switch for switch in all_switches()}
LOADER = """
import torch
import atexit, gc, os, sys, threading
gc.freeze()
with open(os.path.join(sys.path[0], "named")) as named:
    __file__ = sys.argv[0] = named.read()
sys.path[0] = os.path.dirname(__file__)
with open(__file__) as program:
    exec(compile(program.read(), __file__, "exec"))
threading._shutdown()
atexit._run_exitfuncs()
sys.stdout.flush(), sys.stderr.flush()
os._exit(0)
"""


class TorchForks:
    """Runs programs that import torch first of all, as files of their own. Switches that set
    variables need fresh processes. Without the end of an interpreter that has torch, a fork takes a
    third of the time."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder, self.environment = folder, environment
        (folder / "loader.py").write_text(LOADER)
        command = (sys.executable, str(folder / "loader.py"))
        self.prepared = Prepared(folder, command, hooked_environment(environment, folder), (), ())

    def run(
        self,
        program: Path,
        names: Sequence[str] = (),
        extent: Extent | None = None,
        *,
        perturb: Perturbation = "",
        features: frozenset[str] = frozenset(),
    ) -> Result:
        while self.prepared.fault is None:
            time.sleep(0.01)
        assert self.prepared.fault == ""
        switches: list[Switch] = [SWITCHES[name] for name in names]
        assert not any(switch.environment for switch in switches)
        (self.folder / "named").write_text(str(program))
        return run_program(
            (), switches, extent or Extent(), environment=self.environment, timeout=300,
            perturb=perturb, prepared=self.prepared, features=features,
        )  # fmt: skip


@contextmanager
def torch_forks(folder: Path, environment: Mapping[str, str]) -> Iterator[TorchForks]:
    forks = TorchForks(folder, environment)
    try:
        yield forks
    finally:
        forks.prepared.discard()
