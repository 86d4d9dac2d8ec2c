"""A baseline's plan, `profkit.baseline-plan/1`: the request, the target, and the runs."""

from typing import Literal, TypeAlias

from msgspec import UNSET, UnsetType

from profkit.core.fingerprint import Device
from profkit.core.typed_file import Amount, Count, Facts, File, Maybe, Model
from profkit.study.matrix import Matrix

IMPORTED = "imported"
Origin: TypeAlias = Literal["measured", "said", "none"]


class Backend(Model, frozen=True, kw_only=True):
    """A backend of the target; `setting` is the code that selects it, `gone` the reason why it was
    unavailable when cells of it were missing."""

    name: str
    version: str | None = None
    available: bool
    reason: str = ""
    setting: str = ""
    gone: str | UnsetType = UNSET


class Run(Model, frozen=True, kw_only=True):
    """A run that measured cells; `processes` is null where not counted."""

    command: tuple[str, ...]
    created: str
    processes: Count | None


class Program(Model, frozen=True, kw_only=True):
    """The target: its name and its script's, null for imported latencies."""

    name: str | None = None
    file: str | None = None
    sha256: str | None = None


class Method(Model, frozen=True, kw_only=True):
    """How cells are measured; `warmup` in seconds."""

    samples: Count | None = None
    blocks: Count | None = None
    seed: int | None = None
    timer: str
    cache: str
    warmup: Amount | None = None
    backends: tuple[str, ...]
    device: str | None = None


class Asked(Method, frozen=True, kw_only=True):
    """Options that must not change between runs."""

    target: str | None = None
    matrix: Matrix


class MeasuredOn(Facts, frozen=True, kw_only=True):
    """The device of all cells."""

    device: Maybe[str] = UNSET
    name: Maybe[str] = UNSET
    uuid: Maybe[str] = UNSET
    multiprocessors: Maybe[Count] = UNSET


class PlanFile(File, frozen=True, kw_only=True, tag="profkit.baseline-plan/1"):
    """The request and its record; `budget` and `seconds`, of all runs, in seconds.

    `gpus` are all GPUs that were measured on, where there may be several: they differ in their
    UUIDs alone, and `gpu` is the first.
    """

    asked: Asked
    target: Program
    gpu: Device | None = None
    gpu_from: Origin | UnsetType = UNSET
    gpus: tuple[Device, ...] | UnsetType = UNSET
    measured_on: MeasuredOn | None = None
    budget: Amount | None = None
    command: tuple[str, ...]
    created: str
    seconds: Amount | None = None
    backends: tuple[Backend, ...]
    runs: tuple[Run, ...] | UnsetType = UNSET


class ProfiledCell(Model, frozen=True, kw_only=True):
    """A cell that was profiled into a folder, or the reason why not."""

    id: str
    folder: str | None
    reason: str
