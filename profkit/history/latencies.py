"""The points of profkit's own latencies: of `profkit time`, timed runs, and cells of baselines."""

from __future__ import annotations

import statistics
from datetime import datetime
from typing import Any

import msgspec

from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.typed_file import known, read_file
from profkit.history.content import Content, Imported, clock_policy, commit_of
from profkit.history.record import Conditions, Point, Series
from profkit.study.matrix import shape_name
from profkit.timing.cell import Cell
from profkit.timing.latency_format import CPU, Latency, LatencyFile


def import_latencies(content: Content) -> Imported:
    """The series of a file of latencies."""
    file = _decoded(content, LatencyFile)
    manifest = content.manifest
    time, notes = content.time(file.created, manifest.created if manifest else "")
    points = tuple(
        _point(content, time, latency, file.fingerprint, file.profkit, variant)
        for latency in file.series
        if (variant := _variant(latency)) is not None
    )
    return Imported(points, notes)


def _variant(latency: Latency) -> str | None:
    """A series' variant; None for the other commit of `time --against`."""
    variants = latency.target.variants or ()
    before, colon, name = latency.label.rpartition(":")
    if not colon or len(variants) != 1 or name != variants[0]:
        return latency.label
    if before == "this tree":
        return name
    return None if _is_commit(before) else latency.label


def _is_commit(text: str) -> bool:
    return len(text) == _SHORT_COMMIT and all(digit in "0123456789abcdef" for digit in text)


_SHORT_COMMIT = 9  # digits, as `profkit time --against` labels a commit


def import_cell(content: Content) -> Imported:
    """A cell of a baseline; no point where it was not measured."""
    cell = _decoded(content, Cell)
    if cell.latency is None:
        return Imported(())
    taken_at = cell.source.taken if cell.source else None
    time, notes = content.time(taken_at or cell.created)
    point = _point(
        content, time, cell.latency, cell.fingerprint, cell.profkit, cell.backend, cell.shape
    )
    return Imported((point,), notes)


def _point(
    content: Content,
    time: datetime,
    latency: Latency,
    fingerprint: Fingerprint,
    version: str,
    variant: str,
    shape: str = "",
) -> Point:
    target, gpu = latency.target, latency.gpu or known(fingerprint.gpu) or Device()
    sizes = dict(target.shapes or {}) | ({"dtype": target.dtype} if target.dtype else {})
    manifest = content.manifest
    commit = known(fingerprint.commit) or {}
    return Point(
        series=Series(
            target=content.stated.target or target.name or (manifest.target if manifest else ""),
            variant=variant,
            shape=shape or (shape_name(sizes) if sizes else ""),
            gpu_model=CPU if latency.timer == "wall" else gpu.name or "",
            branch=content.stated.branch,
        ),
        conditions=Conditions(
            gpu_uuid=gpu.uuid or "",
            driver=gpu.driver or "",
            cuda=(known(fingerprint.versions) or {}).get("cuda") or "",
            clock_policy=clock_policy(gpu),
            timer=latency.timer,
            cache_policy=latency.cache,
            profkit=version,
        ),
        time=time,
        run=content.run,
        source=content.source,
        commit=commit_of(
            str(commit.get("commit", "")), content.stated, dirty=commit.get("dirty") is True
        ),
        parent="",
        block_medians=tuple(statistics.median(block.samples) for block in latency.blocks),
    )


def _decoded(content: Content, model: Any) -> Any:
    """The file as its model: msgspec's own decoder takes a twentieth of the time of `read_file`,
    which names the place of a fault."""
    try:
        return msgspec.json.decode(content.data, type=model)
    except msgspec.MsgspecError:
        return read_file(content.path, model)
