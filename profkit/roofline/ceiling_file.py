"""Measured roofs on disk: as a file of `profkit ceilings`, and kept for each GPU of this user."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from profkit.core.errors import BadInput, EnvironmentProblem
from profkit.core.fields import Fields
from profkit.core.file_name import file_name
from profkit.core.json_text import finite
from profkit.core.state_folder import state_folder, write_state
from profkit.core.text_files import read_json
from profkit.core.version import __version__
from profkit.roofline.ceilings import (
    BYTES,
    FLOP,
    LABELS,
    OPERATIONS,
    Ceiling,
    Ceilings,
    unfit,
)

__all__ = [
    "SCHEMA",
    "Ceiling",
    "Ceilings",
    "ceilings_json",
    "find_ceilings",
    "keep_ceilings",
    "read_ceilings",
]

SCHEMA = "profkit.ceilings/1"
STATISTIC = (
    "rate: median over short bursts of calls, each after a pause; "
    "steady: median over blocks of back-to-back calls, after a warm-up to a steady SM clock"
)
_NUMBERS = (
    "low",
    "high",
    "level",
    "sm_clock",
    "sm_clock_low",
    "sm_clock_high",
    "power",
    "temperature",
    "peak",
    "steady",
    "steady_clock",
    "steady_power",
)
_SMALLEST = 1e-3
_REMEDY = "run `profkit ceilings` on it, or give --ceilings FILE"


def read_ceilings(path: Path | str) -> Ceilings:
    """The roofs in a file that `profkit ceilings` wrote; raises BadInput for any other."""
    path = Path(path)
    document = read_json(path, "give a file of `profkit ceilings -o`")
    try:
        return _ceilings(document)
    except BadInput as error:
        raise BadInput(f"{path}: {error.message}", error.remedy or "measure anew") from None


def ceilings_json(ceilings: Ceilings) -> str:
    """The document `profkit.ceilings/1`; what is not known is null."""
    gpu = ceilings.fingerprint.get("gpu") or {}
    document = {
        "schema": SCHEMA,
        "profkit": __version__,
        "created": ceilings.created,
        "statistic": STATISTIC,
        "gpu": {**gpu, "name": ceilings.gpu, "uuid": ceilings.uuid or None},
        "ceilings": [_row(ceiling) for ceiling in ceilings.rates.values()],
        "left_out": dict(ceilings.left_out),
        "neighbours": ceilings.neighbours,
        "seconds": ceilings.seconds,
        "fingerprint": dict(ceilings.fingerprint),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


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


def _row(ceiling: Ceiling) -> dict[str, Any]:
    numbers = {name: finite(getattr(ceiling, name)) for name in _NUMBERS}
    return {
        "name": ceiling.name,
        "rate": ceiling.rate,
        "unit": ceiling.unit,
        "how": ceiling.how,
        "amount": ceiling.amount,
        "samples": ceiling.samples,
        **numbers,
        "throttled_by": list(ceiling.throttled_by),
        "steady_throttled_by": list(ceiling.steady_throttled_by),
        "share": finite(ceiling.share),
        "verified": ceiling.verified,
        "problem": ceiling.problem,
    }


def _ceilings(document: Any) -> Ceilings:
    if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
        raise BadInput(f"not a document of {SCHEMA}", "give a file of `profkit ceilings -o`")
    whole = Fields(document, "")
    whole.needs("gpu", "ceilings")
    gpu = whole.fields("gpu")
    gpu.needs("name")
    rows = [_ceiling(row) for row in whole.rows("ceilings")]
    names = [row.name for row in rows]
    if len(set(names)) < len(names):
        raise BadInput("the same roof stands there twice")
    left_out = whole.fields("left_out")
    return Ceilings(
        gpu=gpu.text("name"),
        uuid=gpu.text("uuid"),
        rates={row.name: row for row in rows},
        created=whole.text("created"),
        seconds=whole.number("seconds", 0) or 0.0,
        left_out={name: left_out.text(name) for name in left_out.row},
        fingerprint=whole.fields("fingerprint").row,
        neighbours=whole.whole("neighbours", 0) or 0,
    )


def _ceiling(row: Any) -> Ceiling:
    if not isinstance(row, Mapping):
        raise BadInput("a roof is no object")
    name = Fields(row, "a roof").text("name", tuple(LABELS))
    fields = Fields(row, name or "a roof")
    fields.needs("name", "rate", "unit", "how", "amount", "samples")
    numbers = {key: fields.number(key, 0) for key in _NUMBERS}
    known = {key: math.nan if value is None else value for key, value in numbers.items()}
    return Ceiling(
        name=name,
        rate=fields.number("rate", _SMALLEST) or math.nan,
        unit=fields.text("unit", (BYTES, FLOP, OPERATIONS)),
        how=fields.text("how"),
        amount=fields.number("amount", _SMALLEST) or math.nan,
        samples=fields.whole("samples", 1) or 0,
        throttled_by=fields.texts("throttled_by"),
        steady_throttled_by=fields.texts("steady_throttled_by"),
        verified=bool(fields.flag("verified")),
        problem=fields.text("problem"),
        **known,
    )


def _file(gpu: str) -> Path:
    return state_folder("ceilings") / f"{file_name(gpu)}.json"
