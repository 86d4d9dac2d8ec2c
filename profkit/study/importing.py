"""A baseline of third-party latencies, with the metadata of their files."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from msgspec import UNSET, structs

from profkit.capture.correctness import Declared
from profkit.capture.environment import digest as environment_digest
from profkit.capture.target import NAME
from profkit.core.errors import BadInput, UsageError
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.regular_file import digest
from profkit.core.text_files import read_json
from profkit.core.timestamp import timestamp
from profkit.core.yaml_files import shipped_yaml
from profkit.hardware.gpus import Datasheet, datasheet_named, datasheets_named
from profkit.study import matrix as matrices
from profkit.study.folder import drop_unplanned, held, read_plan, write_cell, write_plan
from profkit.study.plan_format import IMPORTED, Asked, Backend, PlanFile, Program
from profkit.timing.cell import Cell, CellStatus, Source, Value
from profkit.timing.latency_file import read_latencies
from profkit.timing.latency_format import MemoryUse

_NAMES, _VERSIONS, _FACTS, _PEAKS = shipped_yaml("profkit.study", "spellings.yaml").values()
_UNITS_APART = 100  # chosen: a stated median that differs by more is in another unit (1000)
_REMEDY = "fix the shape in the file"
_LONGEST = 100  # characters, chosen: names and versions are shorter
_MOST_MEMORY = 2**50  # bytes, chosen: 1 PiB is above any GPU


def import_latencies(
    files: Sequence[Path],
    folder: Path,
    *,
    matrix: matrices.Matrix | None,
    gpu: str | None,
    backend: str,
    unit: str | None,
    command: Sequence[str],
) -> None:
    """Write a baseline of files, each a cell of `backend`.

    The shapes are those of `matrix` in the order of the files, or those of the files. `gpu` is the
    name of a product with a datasheet. Raises UsageError for a folder that contains a baseline, a
    matrix of another length or a shape that contradicts a file; BadInput for an invalid file.
    """
    if not NAME.fullmatch(backend):
        raise UsageError(
            f"--backend {backend!r} is not a valid name", "use letters, digits, '_', '.', '+', '-'"
        )
    if read_plan(folder) is not None:
        raise UsageError(f"{folder}: contains a baseline", "give -o another folder")
    if matrix is not None and len(matrix.shapes) != len(files):
        raise UsageError(
            f"{len(files)} files for the {len(matrix.shapes)} shapes of {matrix.name}",
            "name the files in the order of its shapes",
        )
    imports = [_read(path) for path in files]
    own = [source.sizes or {"file": source.path.stem} for source in imports]
    shapes = matrix or matrices.matrix_of(IMPORTED, "", own)
    for source, shape in zip(imports, shapes.shapes, strict=True):
        for name, value in source.sizes.items():
            if shape.arguments.get(name, value) != value:
                raise UsageError(
                    f"{source.path}: {name} {value}, but {shape.name} has {shape.arguments[name]}",
                    "name the files in the order of the matrix",
                )
    sheet = _datasheet(gpu, imports)
    stated = any(source.facts.keys() - {"time"} for source in imports)
    cells = [
        _cell(source, place, shape, backend, sheet, unit, stated=stated)
        for place, (source, shape) in enumerate(zip(imports, shapes.shapes, strict=True))
    ]
    with held(folder):
        drop_unplanned(folder)
        for cell in cells:
            write_cell(folder, cell)
        write_plan(folder, _plan(shapes, cells, backend, sheet, command))  # without it it is none


class _File(NamedTuple):
    """A file of latencies: its content without the samples, its shape, and the facts and the
    peak memory (bytes) that it states."""

    path: Path
    document: Mapping[str, object]
    sizes: Mapping[str, Value]
    facts: Mapping[str, str]
    peak_memory: int | None


def _read(path: Path) -> _File:
    """A file, with metadata from its top level or one below, under any of the usual keys."""
    document = _document(path)
    levels = [document, *(value for value in document.values() if isinstance(value, Mapping))]

    def stated(spellings: Sequence[str]) -> str:
        values = (level.get(name) for level in levels for name in spellings)
        return next(filter(None, map(_short, values)), "")

    facts = {name: stated(spellings) for name, spellings in (_VERSIONS | _FACTS).items()}
    if isinstance(gpu := document.get("gpu"), Mapping):
        facts["gpu"] = _short(gpu.get("name"))
    peaks = (
        round(value * unit)
        for level in levels
        for name, unit in _PEAKS.items()
        if isinstance(value := level.get(name), int | float) and 1 < value * unit < _MOST_MEMORY
    )
    known = {name: text for name, text in facts.items() if text}
    return _File(path, document, _sizes(path, document), known, next(peaks, None))


def _short(value: object) -> str:
    """A name or version; "" for what can be none."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= _LONGEST else ""


def _datasheet(gpu: str | None, imports: Sequence[_File]) -> Datasheet | None:
    """The datasheet that is asked for, else that of the GPU which all files name.

    Raises UsageError where none is of the name, or a file names another GPU.
    """
    if not gpu:
        names = {source.facts.get("gpu", "") for source in imports}
        with suppress(UsageError):
            return datasheet_named(names.pop() if len(names) == 1 else "")
        return None
    sheet = datasheet_named(gpu)
    if sheet is None:
        raise UsageError(f"--gpu {gpu!r}: no datasheet", "leave --gpu out")
    for source in imports:
        named = source.facts.get("gpu", "")
        if (meant := datasheets_named(named)) and sheet not in meant:
            raise UsageError(
                f"{source.path}: states the GPU {named}, not {sheet.name}", "leave --gpu out"
            )
    return sheet


def _environment(source: _File, sheet: Datasheet | None, dtype: str | None) -> Fingerprint:
    """The environment that a file states."""
    name = source.facts.get("gpu") or (sheet.name if sheet else "") or "not known"
    return Fingerprint(
        gpu=Device(name=name, driver=source.facts.get("driver")),
        versions={name: source.facts[name] for name in _VERSIONS if name in source.facts},
        compiler=None,
        dtype=dtype,
        flags=None,
        variables={},
        commit=None,
        said=True,
    )


def _document(path: Path) -> Mapping[str, object]:
    """A file's content without its samples; empty where it is not a JSON object."""
    try:
        document = read_json(path)
    except BadInput:
        return {}  # reading its samples reports the fault
    if not isinstance(document, dict):
        return {}
    return {
        key: value
        for key, value in document.items()
        if not (isinstance(value, list) and len(value) > len(_NAMES)) and key != "series"
    }


def _sizes(path: Path, document: Mapping[str, object]) -> dict[str, Value]:
    """The shape of a file, under `config` or at its top level; raises BadInput for an invalid
    one."""
    config = document.get("config")
    config = config if isinstance(config, dict) else document
    values = {
        name: next((config[spelling] for spelling in spellings if spelling in config), None)
        for name, spellings in _NAMES.items()
    }
    return {name: _size(path, name, value) for name, value in values.items() if value is not None}


def _size(path: Path, name: str, value: Any) -> Value:
    if name == "dtype":
        dtype = matrices.dtype_named(value) if isinstance(value, str) else None
        if dtype is None:
            raise BadInput(f"{path}: dtype {value!r} is unknown", _REMEDY)
        return dtype
    if name == "causal" and isinstance(value, bool):
        return value
    if name != "causal" and type(value) is int and value >= 1:
        return value
    kind = "boolean" if name == "causal" else "size"
    raise BadInput(f"{path}: {name} {value!r} is not a valid {kind}", _REMEDY)


def _cell(
    source: _File,
    place: int,
    shape: matrices.MatrixShape,
    backend: str,
    sheet: Datasheet | None,
    unit: str | None,
    *,
    stated: bool,
) -> Cell:
    """A file's cell; where files have `stated` their environments, with that."""
    path, saved = source.path, read_latencies(source.path, unit)
    if len(saved.latencies) > 1:
        raise UsageError(
            f"{path}: contains {len(saved.latencies)} series", "import files of one series each"
        )
    (latency,) = saved.latencies
    own = median(latency.samples)
    claimed = saved.claimed.median if saved.claimed else None
    if claimed and not 1 / _UNITS_APART < claimed / own < _UNITS_APART:
        raise BadInput(
            f"{path}: states a median of {claimed:.4g} s, that of its samples is {own:.4g} s",
            "one of them is in another unit: fix the file",
        )
    try:
        target = latency.target or _target(shape)
    except ValueError as error:
        raise BadInput(f"{path}: {error}", _REMEDY) from None
    ready, device = latency.ready, latency.gpu or Device()
    if source.peak_memory and ready.memory is UNSET:
        ready = structs.replace(ready, memory=MemoryUse(peak_allocated=source.peak_memory))
    if sheet and not device:  # of which the file knows nothing
        capability = f"{sheet.cc[0]}.{sheet.cc[1]}"
        device = Device(name=sheet.name, compute_capability=capability,
                        multiprocessors=sheet.sm_count, memory_bytes=0)  # fmt: skip
    fingerprint, sha256 = saved.fingerprint, saved.fingerprint_sha256
    if stated and not fingerprint:
        fingerprint = _environment(source, sheet, target.dtype or None)
        sha256 = environment_digest(fingerprint)
    return Cell(
        shape=shape.name,
        at=place,
        arguments=dict(shape.arguments),
        backend=backend,
        status=CellStatus.imported,
        latency=structs.replace(latency, label=backend, target=target, gpu=device, ready=ready),
        fingerprint=fingerprint,
        fingerprint_sha256=sha256,
        created=timestamp(),
        source=Source(
            file=path.name,
            sha256=digest(path),
            said=dict(source.document),
            median=claimed,
            taken=source.facts.get("time"),
        ),
    )


def _target(shape: matrices.MatrixShape) -> Declared:
    """A target of these sizes, with the work of attention where all of them are known."""
    sizes = dict(shape.arguments)
    work = matrices.attention_work(sizes)
    dtype = sizes.pop("dtype", None)
    return Declared(
        name=IMPORTED, shapes=sizes, dtype=None if dtype is None else str(dtype), work=work
    )


def _plan(
    matrix: matrices.Matrix,
    cells: Sequence[Cell],
    backend: str,
    sheet: Datasheet | None,
    command: Sequence[str],
) -> PlanFile:
    latencies = [cell.latency for cell in cells if cell.latency]
    own = next((latency.gpu for latency in latencies if latency.gpu), None)
    return PlanFile(
        asked=Asked(
            matrix=matrix, timer=latencies[0].timer, cache=latencies[0].cache, backends=(backend,)
        ),
        target=Program(),
        gpu=own,
        gpu_from="said" if sheet else ("measured" if own else "none"),
        command=tuple(command),
        created=timestamp(),
        backends=(Backend(name=backend, available=True),),
    )
