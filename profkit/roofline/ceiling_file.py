"""Measured roofs on disk: as a file of `profkit ceilings`, and kept for each GPU of this user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import nan
from pathlib import Path
from reprlib import repr as brief
from typing import Annotated, Any, Literal

from msgspec import Meta, field, structs

from profkit.core.errors import BadInput, EnvironmentProblem
from profkit.core.file_name import file_name
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.json_text import finite
from profkit.core.state_folder import state_folder, write_state
from profkit.core.typed_file import (
    Amount,
    Count,
    File,
    Model,
    convert,
    encode,
    plain,
    read_file,
)
from profkit.core.version import __version__
from profkit.roofline.ceilings import (
    LABELS,
    Ceiling,
    Ceilings,
    unfit,
)

STATISTIC = (
    "rate: median over short bursts of calls, each after a pause; "
    "steady: median over blocks of back-to-back calls, after a warm-up to a steady SM clock"
)
_REMEDY = "run `profkit ceilings` on it, or give --ceilings FILE"


class CeilingRow(Model, frozen=True, kw_only=True):
    """A roof. `rate` is `amount`, the bytes, FLOP or operations of a call, over the median time of
    a call in short bursts after pauses; `low` to `temperature`, `throttled_by` and `share`, which
    is of `peak`, the datasheet's dense one, belong to it. `low` and `high` come from the ends of
    the median's interval, `level` is the coverage that it claims. `steady` and what is named so are
    under a steady load. `problem` says why the rate can't be what it is called."""

    name: Annotated[str, Meta(extra_json_schema={"enum": list(LABELS)})]
    rate: Annotated[float, Meta(ge=1e-3, le=1e30)]
    unit: Literal["B/s", "FLOP/s", "op/s"]
    how: str
    amount: Annotated[float, Meta(ge=1e-3, le=1e30)]
    samples: Annotated[int, Meta(ge=1)]
    low: Amount | None = None
    high: Amount | None = None
    level: Amount | None = None
    sm_clock: Amount | None = None
    sm_clock_low: Amount | None = None
    sm_clock_high: Amount | None = None
    power: Amount | None = None
    temperature: Amount | None = None
    peak: Amount | None = None
    steady: Amount | None = None
    steady_clock: Amount | None = None
    steady_power: Amount | None = None
    throttled_by: tuple[str, ...] = ()
    steady_throttled_by: tuple[str, ...] = ()
    share: Amount | None = None
    verified: bool = False
    problem: str = ""

    def __post_init__(self) -> None:
        if self.name not in LABELS:
            raise ValueError(f"{brief(self.name)} is none of {', '.join(LABELS)}")

    @property
    def ceiling(self) -> Ceiling:
        """What is not known is NaN."""
        fields: dict[str, Any] = structs.asdict(self)
        known: dict[str, Any] = {
            name: nan if value is None else value
            for name, value in fields.items()
            if name != "share"
        }
        return Ceiling(**known)


class CeilingFile(File, frozen=True, kw_only=True, tag="profkit.ceilings/1"):
    """Measured roofs of one GPU. SI units: B/s, FLOP/s, op/s, Hz, W, degrees C, seconds; what is
    not known is null. `statistic` is what every rate is taken from, `left_out` has the roofs that
    could not be measured, and why, `neighbours` counts processes of others on the GPU."""

    profkit: str = ""
    created: str = ""
    statistic: str = STATISTIC
    gpu: Device
    ceilings: tuple[CeilingRow, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    neighbours: Count = 0
    seconds: Amount = 0.0
    fingerprint: Fingerprint = Fingerprint()

    def __post_init__(self) -> None:
        if not self.gpu.name:
            raise ValueError("gpu has no 'name'")
        if len({row.name for row in self.ceilings}) < len(self.ceilings):
            raise ValueError("the same roof stands there twice")


def read_ceilings(path: Path | str) -> Ceilings:
    """The roofs in a file that `profkit ceilings` wrote; raises BadInput for any other."""
    file = read_file(Path(path), CeilingFile, "give a file of `profkit ceilings -o`")
    return Ceilings(
        gpu=file.gpu.name or "",
        uuid=file.gpu.uuid or "",
        rates={row.name: row.ceiling for row in file.ceilings},
        created=file.created,
        seconds=file.seconds,
        left_out=file.left_out,
        fingerprint=plain(file.fingerprint),
        neighbours=file.neighbours,
    )


def ceilings_json(ceilings: Ceilings) -> str:
    """The document `profkit.ceilings/1`; what is not known is null."""
    fingerprint = convert(ceilings.fingerprint, Fingerprint)
    gpu = fingerprint.gpu or Device()
    file = CeilingFile(
        profkit=__version__,
        created=ceilings.created,
        gpu=structs.replace(gpu, name=ceilings.gpu, uuid=ceilings.uuid or None),
        ceilings=tuple(_row(ceiling) for ceiling in ceilings.rates.values()),
        left_out=dict(ceilings.left_out),
        neighbours=ceilings.neighbours,
        seconds=ceilings.seconds,
        fingerprint=fingerprint,
    )
    return encode(file, dense=False)


def keep_ceilings(ceilings: Ceilings) -> Path:
    """Keep roofs for later plots of reports from this GPU; their file.

    One that has a `problem` is not kept. Roofs of this GPU kept before stay where these lack them
    and the GPU's settings are the same. Raises EnvironmentProblem where nothing can be written.
    """
    sound = {name: one for name, one in ceilings.rates.items() if not one.problem}
    ceilings = replace(ceilings, rates=sound)
    path = _file(ceilings.uuid or ceilings.gpu)
    write_state(path, ceilings_json(_with_kept(ceilings, path)))
    return path


def find_ceilings(gpu: Mapping[str, Any]) -> Ceilings:
    """The roofs kept of a GPU, the newest where several fit.

    `gpu` is what is known of it, as for `unfit`; "name" at least. Where its UUID is not known,
    roofs of another GPU of that name are taken.

    Raises EnvironmentProblem where there are none, or none that still hold.
    """
    name = str(gpu.get("name") or "unknown GPU")
    kept = [one for one in _all_kept() if one.gpu == name]
    fitting = [one for one in kept if not unfit(one, gpu)]
    if fitting:
        return max(fitting, key=lambda one: one.created)
    if not kept:
        raise EnvironmentProblem(f"no measured roofs of {name} are kept here", _REMEDY)
    newest = max(kept, key=lambda one: one.created)
    raise EnvironmentProblem(
        f"the measured roofs kept of {name} are not this one's ({unfit(newest, gpu)[0]})", _REMEDY
    )


def _with_kept(ceilings: Ceilings, path: Path) -> Ceilings:
    """These roofs, and those of the file that these lack."""
    try:
        before = read_ceilings(path)
    except BadInput:
        return ceilings
    if unfit(before, {**(ceilings.fingerprint.get("gpu") or {}), "uuid": ceilings.uuid or None}):
        return ceilings
    left_out = {**before.left_out, **ceilings.left_out}
    rates = {
        name: (ceilings.rates.get(name) or before.rates[name])
        for name in LABELS
        if name in ceilings.rates or (name in before.rates and name not in ceilings.left_out)
    }
    left_out = {name: why for name, why in left_out.items() if name not in rates}
    return replace(ceilings, rates=rates, left_out=left_out)


def _all_kept() -> list[Ceilings]:
    kept = []
    for path in sorted(state_folder("ceilings").glob("*.json")):
        try:
            kept.append(read_ceilings(path))
        except BadInput:
            continue
    return kept


def _row(ceiling: Ceiling) -> CeilingRow:
    values = {name: getattr(ceiling, name) for name in CeilingRow.__struct_fields__}
    row: dict[str, Any] = {
        name: finite(value) if isinstance(value, float) else value for name, value in values.items()
    }
    return CeilingRow(**row)


def _file(gpu: str) -> Path:
    return state_folder("ceilings") / f"{file_name(gpu)}.json"
