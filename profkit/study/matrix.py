"""Matrices of shapes: the options of a target that a baseline measures, in order."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, UnsetType, field

from profkit.core.errors import BadInput, UsageError, inside
from profkit.core.typed_file import File, Model, of_schema
from profkit.core.work import Work
from profkit.core.yaml_files import read_yaml
from profkit.timing.cell import Value

Options: TypeAlias = Annotated[dict[str, Value], Meta(min_length=1)]

MOST_SHAPES = 10_000  # chosen: a mistyped range fails before it fills memory
_ELEMENT_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
_SHORT = {"batch": "b", "heads": "h", "kv_heads": "kv", "length": "s", "dim": "d"}
_ORDER = (*_SHORT, "dtype", "causal", "backward")
_DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
_OTHER_DTYPES = {"float8_e4m3fn", "float8_e5m2", "int8", "uint8"}
_ALSO_CALLED = {"half": "float16", "float": "float32", "double": "float64"}
_OPTION = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_IN_A_NAME = re.compile(r"[^A-Za-z0-9.]+")


class Shapes(Model, frozen=True, kw_only=True):
    """Shapes that share the options of `with`: each of `sizes` in every combination of `vary`, the
    last varying fastest."""

    common: dict[str, Value] | UnsetType = field(name="with", default=UNSET)
    sizes: Annotated[tuple[Options, ...], Meta(min_length=1)] | UnsetType = UNSET
    vary: dict[str, Annotated[tuple[Value, ...], Meta(min_length=1)]] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.common is UNSET and self.sizes is UNSET and self.vary is UNSET:
            raise ValueError("empty group")


class MatrixFile(File, frozen=True, kw_only=True, tag="profkit.matrix/1"):
    """The options of a target that a baseline measures."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    about: str | UnsetType = UNSET
    groups: Annotated[tuple[Shapes, ...], Meta(min_length=1)]


class MatrixShape(Model, frozen=True):
    """A set of options of a target, with its name."""

    name: str
    arguments: dict[str, Value]

    @property
    def words(self) -> tuple[str, ...]:
        """The options as a command line has them; a false one is left out, a true one bare."""
        return tuple(
            word
            for name, value in self.arguments.items()
            if value is not False
            for word in (f"--{name.replace('_', '-')}", *([] if value is True else [str(value)]))
        )


class Matrix(Model, frozen=True):
    """Shapes in order, all different."""

    name: str
    about: str
    shapes: tuple[MatrixShape, ...]


def read_matrix(path: Path) -> Matrix:
    """The matrix of a YAML file; raises BadInput with the location for an invalid one."""
    document = read_yaml(path)
    with inside(path, "see targets/matrices/ and docs/guides/baseline.md"):
        file = of_schema(document, MatrixFile)
    rows = [row for group in file.groups for row in _expanded(path, group)]
    try:
        return matrix_of(file.name, file.about or "", rows)
    except UsageError as error:
        raise BadInput(f"{path}: {error.message}", error.remedy) from None


def matrix_of(name: str, about: str, rows: Sequence[Mapping[str, Value]]) -> Matrix:
    """A matrix of sets of options; raises UsageError for none, too many, or duplicates."""
    if not 0 < len(rows) <= MOST_SHAPES:
        raise UsageError(f"{len(rows)} shapes", f"a matrix has 1 to {MOST_SHAPES}")
    for row in rows:
        for option in row:
            if not _OPTION.fullmatch(option):
                raise UsageError(f"{option!r} is not a valid option name", "write it like kv_heads")
    shapes = tuple(MatrixShape(shape_name(row), dict(row)) for row in rows)
    (twice, count), *_ = Counter(shape.name for shape in shapes).most_common(1)
    if count > 1:
        raise UsageError(f"the shape {twice} occurs {count} times", "name each once")
    return Matrix(name, about, shapes)


def dtype_named(word: str) -> str | None:
    """torch's name of a type that is written as fp16, half or torch.float16, say; else None."""
    name = word.removeprefix("torch.")
    if name in _DTYPES or name in _OTHER_DTYPES:
        return name
    by_short = {short: long for long, short in _DTYPES.items()} | _ALSO_CALLED
    return by_short.get(name)


def combined(sizes: Mapping[str, Sequence[Value]]) -> list[dict[str, Value]]:
    """Every combination of options, the last varying fastest."""
    combinations = itertools.product(*sizes.values())
    return [dict(zip(sizes, values, strict=True)) for values in combinations]


def shape_name(arguments: Mapping[str, Value]) -> str:
    """A short name that can be a file's: `b32-h8-s512-d64-fp16-causal`."""
    ordered = sorted(arguments, key=lambda name: (*_ORDER, name).index(name))
    parts = [_part(name, arguments[name]) for name in ordered if arguments[name] is not False]
    return "-".join(parts) or "as-declared"


def attention_work(sizes: Mapping[str, Value]) -> Work | None:
    """The work of attention of these options; None where a size is unknown."""
    names, width = ("batch", "heads", "length", "dim"), _ELEMENT_BYTES.get(str(sizes.get("dtype")))
    needed = [size for name in names if isinstance(size := sizes.get(name), int)]
    shared = sizes.get("kv_heads")
    if width is None or len(needed) < len(names):
        return None
    return Work.attention(
        *needed,
        element_bytes=width,
        causal=bool(sizes.get("causal", False)),
        backward=bool(sizes.get("backward", False)),
        kv_heads=shared if isinstance(shared, int) else None,
    )


def _part(name: str, value: Value) -> str:
    if value is True:
        return _IN_A_NAME.sub("_", name)
    if name == "dtype":
        return _IN_A_NAME.sub("_", _DTYPES.get(str(value), str(value)))
    return f"{_SHORT.get(name, name)}{_IN_A_NAME.sub('_', str(value))}"


def _expanded(path: Path, group: Shapes) -> Iterator[dict[str, Value]]:
    """Each of the sizes with every combination of the varied options."""
    sizes, vary = group.sizes or ({},), group.vary or {}
    count = len(sizes)
    for values in vary.values():
        count *= len(values)
    if count > MOST_SHAPES:
        raise BadInput(f"{path}: {count} shapes in a group", f"a matrix has 1 to {MOST_SHAPES}")
    together = combined(vary)
    for size, choice in itertools.product(sizes, together):
        yield {**(group.common or {}), **size, **choice}
