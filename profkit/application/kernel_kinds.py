"""What a kernel does, by its name: attention, GEMM, norm, optimizer, ..."""

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

import numpy as np
from msgspec import Struct, convert

from profkit.core.yaml_files import shipped_yaml
from profkit.timeline.events import Events
from profkit.timeline.work import Mask

COMMUNICATION, OPTIMIZER, OTHER, GRAPH = "communication", "optimizer", "other", "CUDA graph"
GEMM, CONVOLUTION, ATTENTION, SOFTMAX = "GEMM", "convolution", "attention", "softmax"
ELEMENTWISE, REDUCTION, COPY, GEMV = "elementwise", "reduction", "copy", "GEMV"
PRODUCTS = frozenset({GEMM, CONVOLUTION})
"""Kinds whose work tensor cores do."""
ON_TENSOR_CORES = {"TF32": 4, "BF16": 2, "FP16": 2, "FP8": 1, "INT8": 1}
"""Arithmetic that only tensor cores have in libraries' kernels, and bytes of an operand."""
ALIGNED = 16
"""Bytes of operands that tensor-core kernels load at once (cp.async)."""

_LONGEST = 4096  # characters of a name, chosen: templates make 3,000; patterns take their square
_ALIGNMENT = re.compile(r"_align[a-z]?(\d+)")
_COLLECTIVES = re.compile(
    r"AllReduce|AllGather|ReduceScatter|Broadcast|SendRecv|AllToAll|Reduce|all_?reduce|"
    r"all_?gather|reduce_?scatter|broadcast|all_?to_?all|cross_device_reduce|barrier"
)


class KernelTraits(Struct, frozen=True):
    """What a kernel's name says: its kind, "other" where no pattern matches, and the `arithmetic`
    of a matrix product, convolution or attention, "" where the name doesn't say it.

    `eager`: of a framework's single operation. `compiled`: made by a compiler that fuses. `layout`:
    a copy between layouts of images. `fused`: an optimizer that does all of its arithmetic at once.
    `aligned`: bytes in which operands of tensor cores are read, at most 16. `single`: works on
    FP32 data, `double` on FP64. `update`: arithmetic of an optimizer. `planar`: of images whose
    channels are apart (NCHW). `older`: by instructions of Ampere. `is_loss`: a loss's softmax.
    `message`: "gather", "product", "fill" or "scatter" of rows, each a kernel of its own.
    """

    kind: str
    arithmetic: str = ""
    eager: bool = False
    compiled: bool = False
    layout: bool = False
    fused: bool = False
    aligned: int = ALIGNED
    single: bool = False
    double: bool = False
    update: bool = False
    older: bool = False
    planar: bool = False
    is_loss: bool = False
    message: str = ""

    @property
    def group(self) -> str:
        """The kind, apart by what limits it."""
        if self.layout:
            return "layout conversion"
        if self.kind == OPTIMIZER and self.fused:
            return "optimizer, fused"
        is_known = self.kind == ATTENTION or bool(self.arithmetic)
        made = "compiled" if self.compiled and not is_known else ""
        return ", ".join(filter(None, (self.kind, self.arithmetic, made)))


@lru_cache(maxsize=10_000)
def kernel_traits(name: str) -> KernelTraits:
    """The traits of a kernel of this demangled name."""
    name = name[:_LONGEST]
    plain = _plain(name)
    patterns = _patterns()
    has = {trait: bool(re.search(known, name)) for trait, known in patterns.traits.items()}
    kind = next(
        (row.kind for row in patterns.kinds if re.search("|".join(row.match), plain)), OTHER
    )
    arithmetic = ""
    if kind in {*PRODUCTS, ATTENTION, GEMV}:
        arithmetic = _first(patterns.arithmetic, name)
    aligned = min(map(int, _ALIGNMENT.findall(plain)), default=ALIGNED)
    return KernelTraits(
        kind=kind,
        arithmetic=arithmetic,
        eager=has["eager"],
        compiled=has["compiled"],
        layout=kind == COPY and has["layout"],
        fused=kind == OPTIMIZER and has["fused"],
        aligned=min(ALIGNED, aligned * ON_TENSOR_CORES.get(arithmetic, ALIGNED)),
        single=has["single"],
        double=arithmetic == "FP64" or has["double"],
        older=has["older"],
        update=kind == OPTIMIZER or has["update"],
        planar=has["planar"],
        is_loss=kind == SOFTMAX and has["loss"],
        message=_first(patterns.message, name),
    )


def kernel_kind(name: str) -> str:
    """The kind of a kernel of this demangled name, "other" where no pattern matches."""
    return kernel_traits(name).kind


def kernels_of(events: Events, kind: str) -> Mask:
    """By kernel, whether it is of a kind."""
    named = [kernel_kind(item.name) == kind for item in events.kernel_names]
    return np.array(named, dtype=np.bool_)[events.kernels.name]


def group_statement(group: str) -> tuple[str, bool]:
    """What the names of a group's kernels say, "" for nothing, and whether that is its limit."""
    for is_limit, rows in ((False, _patterns().statements), (True, _patterns().limits)):
        for pattern, text in rows.items():
            if re.search(pattern, group):
                return text, is_limit
    return "", False


def _first(patterns: Mapping[str, str], name: str) -> str:
    return next((each for each, known in patterns.items() if re.search(known, name)), "")


def frameworks(names: Iterable[str]) -> Mapping[str, float]:
    """1 for each known framework that names of kernels, ranges or operators are of, else 0."""
    every = tuple(name[:_LONGEST] for name in names)
    known = _patterns().frameworks.items()
    return {
        framework: float(any(re.search(own, each) for each in every)) for framework, own in known
    }


def collective(name: str) -> str:
    """What a communication kernel does, such as "all-reduce"; "communication" where unknown."""
    match = _COLLECTIVES.search(name)
    named = _patterns().collectives
    return named[match[0].replace("_", "").lower()] if match else COMMUNICATION


def _plain(name: str) -> str:
    """A demangled name without return type, unnamed namespaces and parameters."""
    text = re.sub(r"(<unnamed>|\(anonymous namespace\))::", "", name.removeprefix("void "))
    depth = 0
    for place, character in enumerate(text):
        if character == "(" and not depth and place:
            return text[:place]
        depth += (character in "<([") - (character in ">)]" and text[place - 1] != "-")
    return text


class _Named(Struct, frozen=True):
    """A kind and the patterns of its names."""

    kind: str
    match: tuple[str, ...]


class _KindsFile(Struct, frozen=True):
    """What is read of kernel_kinds.yaml."""

    arithmetic: dict[str, str]
    message: dict[str, str]
    traits: dict[str, str]
    frameworks: dict[str, str]
    collectives: dict[str, str]
    limits: dict[str, str]
    statements: dict[str, str]
    kinds: tuple[_Named, ...]


@cache
def _patterns() -> _KindsFile:
    return convert(shipped_yaml("profkit.application", "kernel_kinds.yaml"), _KindsFile)
