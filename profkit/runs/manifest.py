"""The manifest of a run, `profkit.run/1`."""

from typing import Annotated

from msgspec import UNSET, Meta, field

from profkit.core.fingerprint import Fingerprint
from profkit.core.typed_file import Amount, Count, Facts, File, Maybe, Model, Number


class DriverGpu(Facts, frozen=True, kw_only=True):
    """NVML readings of the GPU at the start of the run: Hz, W, degrees C, bytes."""

    index: Maybe[Count] = UNSET
    name: Maybe[str] = UNSET
    uuid: Maybe[str] = UNSET
    driver: Maybe[str] = UNSET
    mig: Maybe[bool] = UNSET
    persistence: Maybe[bool] = UNSET
    ecc: Maybe[bool] = UNSET
    sm_clock: Maybe[Amount] = UNSET
    sm_clock_max: Maybe[Amount] = UNSET
    memory_clock: Maybe[Amount] = UNSET
    power: Maybe[Amount] = UNSET
    power_limit: Maybe[Amount] = UNSET
    power_limit_default: Maybe[Amount] = UNSET
    temperature: Maybe[Number] = UNSET
    memory_used: Maybe[Count] = UNSET
    memory_total: Maybe[Count] = UNSET
    throttled_by: Maybe[tuple[str, ...]] = UNSET


class Policy(Facts, frozen=True, kw_only=True):
    """ncu's options; `set_sha256` is of a file of sections and metrics."""

    set: Maybe[str] = UNSET
    set_sha256: Maybe[str] = UNSET
    clock_control: Maybe[str] = UNSET
    cache_control: Maybe[str] = UNSET
    replay_mode: Maybe[str] = UNSET


class Stage(Model, frozen=True):
    """A part of the work and its wall seconds."""

    name: str
    seconds: Annotated[float, Meta(ge=0)]


class FileEntry(Model, frozen=True, kw_only=True):
    """A file of a run, and how many launches a report has."""

    launches: Maybe[Count] = UNSET
    bytes: Count
    sha256: str


class Manifest(File, frozen=True, kw_only=True, tag="profkit.run/1"):
    """A run's target, its environment, and its files; `unfinished` is the stage in which it ended
    too early."""

    unfinished: Maybe[str] = UNSET
    created: str = ""
    target: str = ""
    command: str = ""
    versions: dict[str, str | None] = field(default_factory=dict)
    gpu: DriverGpu | None = None
    fingerprint: Fingerprint = Fingerprint()
    fingerprint_sha256: str | None = None
    policy: Policy = Policy()
    launches: Count | None = None
    stages: tuple[Stage, ...] = ()
    warnings: tuple[str, ...] = ()
    files: dict[str, FileEntry] = field(default_factory=dict)
