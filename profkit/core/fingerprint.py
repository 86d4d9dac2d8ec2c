"""The environment of a measurement in files."""

from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta

from profkit.core.typed_file import Amount, Count, Facts, Maybe

Capability: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9]{1,3}\.[0-9]{1,3}$")]


class Device(Facts, frozen=True, kw_only=True):
    """A GPU and its settings: clocks in Hz, power in W."""

    name: Maybe[str] = UNSET
    uuid: Maybe[str] = UNSET
    compute_capability: Maybe[Capability] = UNSET
    multiprocessors: Maybe[Count] = UNSET
    memory_bytes: Maybe[Count] = UNSET
    driver: Maybe[str] = UNSET
    sm_clock_max: Maybe[Amount] = UNSET
    memory_clock_max: Maybe[Amount] = UNSET
    sm_clock_application: Maybe[Amount] = UNSET
    power_limit: Maybe[Amount] = UNSET
    ecc: Maybe[bool] = UNSET
    mig: Maybe[bool] = UNSET
    persistence: Maybe[bool] = UNSET

    def refuse_unnamed(self) -> None:
        """Raise ValueError where a required attribute of a GPU is missing."""
        for name in ("name", "compute_capability", "multiprocessors", "memory_bytes"):
            if getattr(self, name) in {UNSET, None}:
                raise ValueError(f"gpu has no {name!r}")


class Fingerprint(Facts, frozen=True, kw_only=True):
    """The environment of a measurement; `said`: self-reported by another program, unverified."""

    gpu: Maybe[Device] = UNSET
    versions: Maybe[dict[str, str | None]] = UNSET
    compiler: Maybe[dict[str, str | None]] = UNSET
    dtype: Maybe[str] = UNSET
    flags: Maybe[dict[str, bool | str | None]] = UNSET
    variables: Maybe[dict[str, str]] = UNSET
    commit: Maybe[dict[str, str | bool]] = UNSET
    said: Maybe[bool] = UNSET
