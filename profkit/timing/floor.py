"""A machine's A/A floors: differences between runs of one and the same build."""

from collections.abc import Collection
from pathlib import Path

from msgspec import structs

from profkit.core.errors import BadInput
from profkit.core.file_name import file_name
from profkit.core.state_folder import state_folder, write_state
from profkit.core.typed_file import Model, encode, read_file


class Floor(Model, frozen=True):
    """The result of `profkit calibrate` on a GPU with a timer and a cache; shares of a latency.

    At most 1% of comparisons of one build with itself exceed each, at 95% confidence:
    `within_process` of interleaved blocks of one process, `between_processes` of two interleaved
    processes, `between_runs` of the medians of runs one after the other. `comparisons` is how many
    of the first there were, `processes` how many pairs of the second, `created` the UTC time.
    """

    gpu: str
    timer: str
    cache: str
    name: str
    within_process: float
    between_processes: float
    between_runs: float
    comparisons: int
    processes: int
    created: str


class FloorFile(Floor, frozen=True, tag_field="schema", tag="profkit.floor/2"):
    """A floor as it is saved."""


def keep_floor(floor: Floor) -> Path:
    """Save a floor for later comparisons on this GPU; its file."""
    path = _file(floor.gpu, floor.timer, floor.cache)
    text = encode(FloorFile(**structs.asdict(floor)))
    write_state(path, text)
    return path


def read_floor(gpu: str, timer: str, cache: str) -> Floor | None:
    """The floor of a GPU (its UUID), a timer and a cache; None without a readable one."""
    try:
        return read_file(_file(gpu, timer, cache), FloorFile)
    except BadInput:
        return None


def floor_between_runs(setups: Collection[tuple[str, str, str]]) -> float | None:
    """The floor between runs of the setup that all were timed with, where it is known."""
    floor = read_floor(*next(iter(setups))) if len(setups) == 1 else None
    return floor.between_runs if floor else None


def _file(*measured_with: str) -> Path:
    return state_folder("floors") / f"{file_name('-'.join(measured_with))}.json"
