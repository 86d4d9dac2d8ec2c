"""Launches of any program, timed and perturbed by a library loaded into it (`launches.c`)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from profkit.core.errors import EnvironmentProblem
from profkit.core.grouping import grouped

_SOURCE = Path(__file__).with_name("launches.c")
_COMPILERS = ("cc", "gcc", "clang")
_SECONDS = 60  # to compile it, chosen: a hundred times what it takes
Size = tuple[int, int, int]
Key = tuple[str, Size, Size, int]
"""A kernel's name, grid, block, and bytes of dynamic shared memory."""


class Launches(Struct, frozen=True):
    """The launches of one kernel and configuration in a process.

    `added` are bytes of shared memory, `resident` the blocks on an SM without and with them.
    `left` says why they were not perturbed; `refused` of them could not be. `times` are seconds of
    some launches, the same ones in each run.
    """

    name: str
    grid: Size
    block: Size
    shared: int
    added: int
    resident: tuple[int, int]
    left: str
    launches: int
    refused: int
    times: tuple[float, ...]

    @property
    def key(self) -> Key:
        """What identifies them in other runs."""
        return self.name, self.grid, self.block, self.shared


class LaunchFile(Struct, frozen=True):
    """What a process recorded. `sms` are the device's SMs, and those that kernels were given."""

    graphs: int
    sms: tuple[int, int]
    problem: str
    kernels: tuple[Launches, ...]


class LaunchRecord(Struct, frozen=True):
    """A run's launches, of all its processes."""

    kernels: Mapping[Key, Launches]
    problem: str = ""
    sms: tuple[int, int] = (0, 0)
    graphs: int = 0


def compiled_library(folder: Path) -> Path:
    """The library that records and perturbs launches.

    Raises EnvironmentProblem without a C compiler.
    """
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise EnvironmentProblem("no C compiler (cc)", "install gcc")
    library = folder / "launches.so"
    options = ["-O2", "-shared", "-fPIC", "-Wl,-z,defs", "-o"]
    words = [compiler, *options, str(library), str(_SOURCE), "-ldl"]
    done = subprocess.run([*words, "-lpthread"], capture_output=True, text=True, timeout=_SECONDS)
    if done.returncode:
        errors = [line.rstrip(".") for line in done.stderr.splitlines() if "error" in line]
        said = errors[0] if errors else f"exit code {done.returncode}"
        raise EnvironmentProblem(f"{compiler} failed: {said}", "check it")
    return library


def recording(
    library: Path, perturbation: str, folder: Path, environment: Mapping[str, str]
) -> dict[str, str]:
    """The variables with which a program records its launches in a folder."""
    return {
        "LD_PRELOAD": ":".join(filter(None, (str(library), environment.get("LD_PRELOAD")))),
        "PROFKIT_PERTURBATION": perturbation,
        "PROFKIT_LAUNCHES": str(folder),
    }


def read_launches(folder: Path) -> LaunchRecord:
    """What a run recorded in a folder."""
    paths = sorted(folder.glob("*.launches"))
    files = [msgspec.json.decode(path.read_bytes(), type=LaunchFile) for path in paths]
    groups = grouped((each.key, each) for file in files for each in file.kernels)
    return LaunchRecord(
        {key: _merged(group) for key, group in groups.items()},
        next((file.problem for file in files if file.problem), ""),
        max((file.sms for file in files), default=(0, 0)),
        sum(file.graphs for file in files),
    )


def _merged(group: Sequence[Launches]) -> Launches:
    return msgspec.structs.replace(
        group[0],
        launches=sum(each.launches for each in group),
        refused=sum(each.refused for each in group),
        times=tuple(time for each in group for time in each.times),
    )
