"""A baseline of third-party latencies, with the metadata of their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from msgspec import UNSET, structs

from profkit.capture.environment import digest as environment_digest
from profkit.capture.target import NAME
from profkit.core.errors import BadInput, UsageError
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.regular_file import digest
from profkit.core.text_files import read_json
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import convert
from profkit.report.gpus import Datasheet, datasheet_named, datasheets_named
from profkit.study.folder import (
    cell_file,
    drop_unplanned,
    held,
    read_plan,
    write_plan,
    write_whole,
)
from profkit.study.json import cell_json
from profkit.study.matrix import (
    Matrix,
    MatrixShape,
    Value,
    attention_work,
    dtype_named,
    matrix_of,
    shape_name,
)
from profkit.study.plan_format import IMPORTED, Asked, Backend, PlanFile, Program
from profkit.timing.cell import Cell, CellStatus, Source
from profkit.timing.latency_file import read_latencies
from profkit.timing.latency_format import Declared, MemoryUse

_NAMES = {
    "batch": ("batch", "batch_size", "B"),
    "heads": ("heads", "num_heads", "n_heads", "H"),
    "kv_heads": ("kv_heads", "num_kv_heads"),
    "length": ("length", "seq", "seq_len", "seqlen", "S"),
    "dim": ("dim", "head_dim", "D"),
    "dtype": ("dtype",),
    "causal": ("causal", "is_causal"),
}
_UNITS_APART = 100  # chosen: a stated median that differs by more is in another unit (1000)
_REMEDY = "fix the shape in the file"
_VERSIONS = {
    "python": ("python_version",),
    "torch": ("pytorch_version", "torch_version", "pytorch", "torch"),
    "cuda": ("cuda_version", "cuda"),
    "cudnn": ("cudnn_version", "cudnn"),
    "triton": ("triton_version", "triton"),
}
_DRIVER = ("driver_version", "driver")
_TIMES = ("timestamp", "datetime", "date")
_GPU = ("gpu", "gpu_name", "device_name")
_PEAKS = dict.fromkeys(("peak_allocated_mb", "peak_memory_mb", "peak_mb"), 2**20) | dict.fromkeys(
    ("peak_allocated", "peak_bytes"), 1
)  # MB are those of 2^20, as torch's users write them
_LONGEST = 100  # characters, chosen: names and versions are shorter
_MOST_MEMORY = 2**50  # bytes, chosen: 1 PiB is above any GPU


def import_latencies(
    files: Sequence[Path],
    folder: Path,
    *,
    matrix: Matrix | None,
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
    imports = [_Import(path, document, _facts(document)) for path in files
               for document in [_document(path)]]  # fmt: skip
    sizes = [_sizes(path, document) for path, document, _ in imports]
    shapes = matrix or _own_shapes(files, sizes)
    for path, arguments, shape in zip(files, sizes, shapes.shapes, strict=True):
        for name, value in arguments.items():
            if shape.arguments.get(name, value) != value:
                raise UsageError(
                    f"{path}: {name} {value}, but {shape.name} has {shape.arguments[name]}",
                    "name the files in the order of the matrix",
                )
    sheet = _datasheet(gpu, imports)
    cells = [
        _cell(source, place, shape, backend, sheet, unit)
        for place, (source, shape) in enumerate(zip(imports, shapes.shapes, strict=True))
    ]
    if any(source.facts.has_environment for source in imports):
        cells = [
            _with_environment(cell, source.facts, sheet)
            for cell, source in zip(cells, imports, strict=True)
        ]
    with held(folder):
        drop_unplanned(folder)
        for cell in cells:
            write_whole(cell_file(folder, cell.id), cell_json(cell))
        write_plan(folder, _plan(shapes, cells, backend, sheet, command))  # without it it is none


class _Facts(NamedTuple):
    """The metadata of a file: GPU, versions and time, "" or None where not stated."""

    gpu: str
    driver: str
    versions: Mapping[str, str]
    time: str
    peak_memory: int | None

    @property
    def has_environment(self) -> bool:
        return bool(self.gpu or self.driver or self.versions)


class _Import(NamedTuple):
    path: Path
    document: Mapping[str, Any]
    facts: _Facts


def _facts(document: Mapping[str, Any]) -> _Facts:
    """Metadata at the top level of a file or one below, under any of the usual keys."""
    gpu, versions = document.get("gpu"), {}
    for name, spellings in _VERSIONS.items():
        if version := _text(document, spellings):
            versions[name] = version
    peaks = (
        round(value * unit)
        for level in _levels(document)
        for name, unit in _PEAKS.items()
        if isinstance(value := level.get(name), int | float) and 1 < value * unit < _MOST_MEMORY
    )
    return _Facts(
        gpu=_text({"name": gpu.get("name")}, ("name",))
        if isinstance(gpu, Mapping)
        else _text(document, _GPU),
        driver=_text(document, _DRIVER),
        versions=versions,
        time=_text(document, _TIMES),
        peak_memory=next(peaks, None),
    )


def _text(document: Mapping[str, Any], spellings: tuple[str, ...]) -> str:
    for level in _levels(document):
        for name in spellings:
            value = level.get(name)
            if isinstance(value, str) and 0 < len(value.strip()) <= _LONGEST:
                return " ".join(value.split())
    return ""


def _levels(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield document
    yield from (value for value in document.values() if isinstance(value, Mapping))


def _datasheet(gpu: str | None, imports: Sequence[_Import]) -> Datasheet | None:
    """The datasheet that is asked for, else that of the GPU which all files name.

    Raises UsageError where none is of the name, or a file names another GPU.
    """
    if not gpu:
        names = {source.facts.gpu for source in imports}
        with suppress(UsageError):
            return datasheet_named(names.pop() if len(names) == 1 else "")
        return None
    sheet = datasheet_named(gpu)
    if sheet is None:
        raise UsageError(f"--gpu {gpu!r}: no datasheet", "leave --gpu out")
    for path, _, facts in imports:
        meant = datasheets_named(facts.gpu)
        if meant and sheet not in meant:
            raise UsageError(
                f"{path}: states the GPU {facts.gpu}, not {sheet.name}", "leave --gpu out"
            )
    return sheet


def _with_environment(cell: Cell, facts: _Facts, sheet: Datasheet | None) -> Cell:
    """The cell with the environment that its file states, where it has no fingerprint."""
    if cell.fingerprint or cell.latency is None:
        return cell
    fingerprint = {
        "gpu": {
            "name": facts.gpu or (sheet.name if sheet else "") or "not known",
            "driver": facts.driver or None,
        },
        "versions": dict(facts.versions),
        "compiler": None,
        "dtype": cell.latency.target.dtype or None,
        "flags": None,
        "variables": {},
        "commit": None,
        "said": True,
    }
    return structs.replace(
        cell,
        fingerprint=convert(fingerprint, Fingerprint),
        fingerprint_sha256=environment_digest(fingerprint),
    )


def _document(path: Path) -> Mapping[str, Any]:
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


def _own_shapes(files: Sequence[Path], sizes: Sequence[Mapping[str, Value]]) -> Matrix:
    rows = [arguments or {"file": path.stem} for path, arguments in zip(files, sizes, strict=True)]
    by_shape: dict[str, list[str]] = {}
    for path, row in zip(files, rows, strict=True):
        by_shape.setdefault(shape_name(row), []).append(str(path))
    for name, paths in by_shape.items():
        if len(paths) > 1:
            raise UsageError(
                f"{', '.join(paths)} all have the shape {name}",
                "import one of them, the others into another baseline",
            )
    return matrix_of(IMPORTED, "", rows)


def _sizes(path: Path, document: Mapping[str, Any]) -> dict[str, Value]:
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
        dtype = dtype_named(value) if isinstance(value, str) else None
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
    source: _Import,
    place: int,
    shape: MatrixShape,
    backend: str,
    sheet: Datasheet | None,
    unit: str | None,
) -> Cell:
    path, document, facts = source
    saved = read_latencies(path, unit)
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
    ready = latency.ready
    if facts.peak_memory and ready.memory is UNSET:
        ready = structs.replace(ready, memory=MemoryUse(peak_allocated=facts.peak_memory))
    device = latency.gpu or (_device(sheet) if sheet else Device())
    return Cell(
        shape=shape.name,
        at=place,
        arguments=dict(shape.arguments),
        backend=backend,
        status=CellStatus.imported,
        latency=structs.replace(latency, label=backend, target=target, gpu=device, ready=ready),
        fingerprint=saved.fingerprint,
        fingerprint_sha256=saved.fingerprint_sha256,
        created=timestamp(),
        source=Source(
            file=path.name,
            sha256=digest(path),
            said=dict(document),
            median=claimed,
            taken=facts.time or None,
        ),
    )


def _target(shape: MatrixShape) -> Declared:
    """A target of these sizes, with the work of attention where all of them are known."""
    sizes = dict(shape.arguments)
    work = attention_work(sizes)
    dtype = sizes.pop("dtype", None)
    name = None if dtype is None else str(dtype)
    return Declared(name=IMPORTED, shapes=sizes, dtype=name, work=work)


def _device(sheet: Datasheet) -> Device:
    """A product as a device of a fingerprint, without unknown values."""
    return Device(
        name=sheet.name,
        compute_capability=f"{sheet.cc[0]}.{sheet.cc[1]}",
        multiprocessors=sheet.sm_count,
        memory_bytes=0,
    )


def _plan(
    matrix: Matrix,
    cells: Sequence[Cell],
    backend: str,
    sheet: Datasheet | None,
    command: Sequence[str],
) -> PlanFile:
    latencies = [cell.latency for cell in cells if cell.latency]
    own = next((latency.gpu for latency in latencies if latency.gpu), None)
    return PlanFile(
        asked=Asked(
            matrix=matrix,
            samples=None,
            blocks=None,
            seed=None,
            timer=latencies[0].timer,
            cache=latencies[0].cache,
            warmup=None,
            device=None,
            backends=(backend,),
        ),
        target=Program(name=None, file=None, sha256=None),
        gpu=own,
        gpu_from="said" if sheet else ("measured" if own else "none"),
        measured_on=None,
        budget=None,
        command=tuple(command),
        created=timestamp(),
        seconds=None,
        backends=(Backend(name=backend, available=True, reason="", setting=""),),
    )
