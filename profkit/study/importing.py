"""A baseline made of latencies that others took, with what their files say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import UNSET, structs

from profkit.capture.target import NAME
from profkit.capture.work import Work
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
    dtype_named,
    matrix_of,
    shape_name,
)
from profkit.study.plan_format import IMPORTED, Asked, Backend, PlanFile, Program
from profkit.study.self_reported import Said, said_in
from profkit.timing.cell import Cell, CellStatus, Source
from profkit.timing.latency_file import read_latencies
from profkit.timing.latency_format import Declared, Latency, MemoryUse

_NAMES = {
    "batch": ("batch", "batch_size", "B"),
    "heads": ("heads", "num_heads", "n_heads", "H"),
    "kv_heads": ("kv_heads", "num_kv_heads"),
    "length": ("length", "seq", "seq_len", "seqlen", "S"),
    "dim": ("dim", "head_dim", "D"),
    "dtype": ("dtype",),
    "causal": ("causal", "is_causal"),
}
_UNITS_APART = 100  # a median of other samples than all may differ; by so much it is a unit
_MEND = "mend the shape that it gives"
_ELEMENT_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}


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

    The shapes are those of `matrix` in the order of the files, or what the files say. `gpu` is the
    name of a product with a datasheet. Raises UsageError for a folder that holds a baseline, a
    matrix of another length or a shape that contradicts a file; BadInput for a file that can't be.
    """
    if not NAME.fullmatch(backend):
        raise UsageError(
            f"--backend {backend!r} is no name", "use letters, digits, '_', '.', '+', '-'"
        )
    if read_plan(folder) is not None:
        raise UsageError(f"{folder}: holds a baseline", "give -o another folder")
    if matrix is not None and len(matrix.shapes) != len(files):
        raise UsageError(
            f"{len(files)} files for the {len(matrix.shapes)} shapes of {matrix.name}",
            "name the files in the order of its shapes",
        )
    documents = [_document(path) for path in files]
    said = [said_in(document) for document in documents]
    told = [_told(path, document) for path, document in zip(files, documents, strict=True)]
    shapes = matrix or _own_shapes(files, told)
    for path, sizes, shape in zip(files, told, shapes.shapes, strict=True):
        _check_shape(path, sizes, shape)
    sheet = _asked_sheet(gpu, files, said) if gpu else _said_sheet(said)
    cells = [
        _cell(path, document, at, shape, backend, sheet, unit)
        for at, (path, document, shape) in enumerate(
            zip(files, documents, shapes.shapes, strict=True)
        )
    ]
    if any(one.environment for one in said):
        cells = [_with_said(cell, one, sheet) for cell, one in zip(cells, said, strict=True)]
    with held(folder):
        drop_unplanned(folder)
        for cell in cells:
            write_whole(cell_file(folder, cell.id), cell_json(cell))
        write_plan(folder, _plan(shapes, cells, backend, sheet, command))  # without it it is none


def _asked_sheet(gpu: str, files: Sequence[Path], said: Sequence[Said]) -> Datasheet:
    """The datasheet that is asked for; raises UsageError for none, or where a file names another
    GPU."""
    sheet = datasheet_named(gpu)
    if sheet is None:
        raise UsageError(f"--gpu {gpu!r}: no datasheet figures for it", "leave it out")
    for path, one in zip(files, said, strict=True):
        meant = datasheets_named(one.gpu)
        if meant and sheet not in meant:
            raise UsageError(
                f"{path}: says to be of {one.gpu}, not {sheet.name}", "leave --gpu out"
            )
    return sheet


def _said_sheet(said: Sequence[Said]) -> Datasheet | None:
    """The datasheet of the GPU that all files name; None where they don't, or it has none."""
    names = {one.gpu for one in said}
    name = names.pop() if len(names) == 1 else ""
    try:
        return datasheet_named(name)
    except UsageError:
        return None


def _with_said(cell: Cell, said: Said, sheet: Datasheet | None) -> Cell:
    """The cell with the environment that its file says, where the file has no fingerprint."""
    if cell.fingerprint or cell.latency is None:
        return cell
    dtype = cell.latency.target.dtype or None
    fingerprint, sha = said.fingerprint(sheet.name if sheet else "", dtype)
    return structs.replace(
        cell, fingerprint=convert(fingerprint, Fingerprint), fingerprint_sha256=sha
    )


def _document(path: Path) -> Mapping[str, Any]:
    """What a file says beside its samples; nothing where it is no JSON object."""
    try:
        document = read_json(path)
    except BadInput:
        return {}  # whoever reads the samples says what is wrong
    if not isinstance(document, dict):
        return {}
    return {
        key: value
        for key, value in document.items()
        if not (isinstance(value, list) and len(value) > len(_NAMES)) and key != "series"
    }


def _own_shapes(files: Sequence[Path], told: Sequence[Mapping[str, Value]]) -> Matrix:
    rows = [sizes or {"file": path.stem} for path, sizes in zip(files, told, strict=True)]
    by_shape: dict[str, list[Path]] = {}
    for path, row in zip(files, rows, strict=True):
        by_shape.setdefault(shape_name(row), []).append(path)
    for name, paths in by_shape.items():
        if len(paths) > 1:
            raise UsageError(
                f"{', '.join(map(str, paths))} are all of the shape {name}",
                "import one of them, the others into a baseline of their own",
            )
    return matrix_of(IMPORTED, "", rows)


def _check_shape(path: Path, sizes: Mapping[str, Value], shape: MatrixShape) -> None:
    """Raises UsageError where a file says to be of another shape."""
    for name, value in sizes.items():
        if shape.arguments.get(name, value) != value:
            raise UsageError(
                f"{path}: is of {name} {value}, {shape.name} of {shape.arguments[name]}",
                "name the files in the order of the matrix",
            )


def _told(path: Path, document: Mapping[str, Any]) -> dict[str, Value]:
    """The shape that a file gives, under `config` or at its top; raises BadInput for what can't be
    one."""
    config = document.get("config")
    config = config if isinstance(config, dict) else document
    found: dict[str, Value] = {}
    for name, spellings in _NAMES.items():
        value = next((config[one] for one in spellings if one in config), None)
        if value is not None:
            found[name] = _size(path, name, value)
    return found


def _size(path: Path, name: str, value: Any) -> Value:
    if name == "dtype":
        dtype = dtype_named(value) if isinstance(value, str) else None
        if dtype is None:
            raise BadInput(f"{path}: dtype {value!r} is none that is known", _MEND)
        return dtype
    if name == "causal" and isinstance(value, bool):
        return value
    if name != "causal" and type(value) is int and value >= 1:
        return value
    what = "neither true nor false" if name == "causal" else "no size"
    raise BadInput(f"{path}: {name} {value!r} is {what}", _MEND)


def _cell(
    path: Path,
    document: Mapping[str, Any],
    at: int,
    shape: MatrixShape,
    backend: str,
    sheet: Datasheet | None,
    unit: str | None,
) -> Cell:
    saved = read_latencies(path, unit)
    if len(saved.latencies) > 1:
        raise UsageError(
            f"{path}: holds {len(saved.latencies)} series", "import files of one series each"
        )
    (latency,) = saved.latencies
    said = saved.claimed.median if saved.claimed else None
    if said and not 1 / _UNITS_APART < said / median(latency.samples) < _UNITS_APART:
        raise BadInput(
            f"{path}: says a median of {said:.4g} s, that of its samples is "
            f"{median(latency.samples):.4g} s",
            "one of them is in another unit: mend the file",
        )
    return Cell(
        shape=shape.name,
        at=at,
        arguments=dict(shape.arguments),
        backend=backend,
        status=CellStatus.imported,
        latency=_with_shape(path, document, latency, backend, shape, sheet),
        fingerprint=saved.fingerprint,
        fingerprint_sha256=saved.fingerprint_sha256,
        created=timestamp(),
        source=Source(
            file=path.name,
            sha256=digest(path),
            said=dict(document),
            median=said,
            taken=said_in(document).taken or None,
        ),
    )


def _with_shape(
    path: Path,
    document: Mapping[str, Any],
    latency: Latency,
    backend: str,
    shape: MatrixShape,
    sheet: Datasheet | None,
) -> Latency:
    """A latency with the target, memory and GPU that were told, where it does not know its own."""
    try:
        target = latency.target or _target(shape)
    except ValueError as error:
        raise BadInput(f"{path}: {error}", _MEND) from None
    ready, peak = latency.ready, said_in(document).peak_memory
    if peak and ready.memory is UNSET:
        ready = structs.replace(ready, memory=MemoryUse(peak_allocated=peak))
    gpu = latency.gpu or (_gpu(sheet) if sheet else Device())
    return structs.replace(latency, label=backend, target=target, gpu=gpu, ready=ready)


def _target(shape: MatrixShape) -> Declared:
    told = dict(shape.arguments)
    dtype = told.pop("dtype", None)
    name = None if dtype is None else str(dtype)
    return Declared(name=IMPORTED, shapes=told, dtype=name, work=_work(told, str(dtype)))


def _work(sizes: Mapping[str, Any], dtype: str) -> Work | None:
    """The work of attention of these sizes; None where one of them is not known."""
    needed = ("batch", "heads", "length", "dim")
    if dtype not in _ELEMENT_BYTES or any(name not in sizes for name in needed):
        return None
    return Work.attention(
        *(sizes[name] for name in needed),
        element_bytes=_ELEMENT_BYTES[dtype],
        causal=bool(sizes.get("causal", False)),
        backward=bool(sizes.get("backward", False)),
        kv_heads=sizes.get("kv_heads"),
    )


def _gpu(sheet: Datasheet) -> Device:
    """A whole product as a fingerprint has it; what nobody told is left out."""
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
