"""What a kernel does, by its name: attention, GEMM, norm, optimizer, ..."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from profkit.core.yaml_files import shipped_yaml
from profkit.ui.names import own_name

COMMUNICATION, OPTIMIZER, OTHER, GRAPH = "communication", "optimizer", "other", "CUDA graph"

_LONGEST = 4096  # characters of a name, chosen: templates make 3,000; patterns take their square
_TILE = re.compile(r"_?(tilesize)?\d+x\d+.*")
_COLLECTIVES = re.compile(
    r"AllReduce|AllGather|ReduceScatter|Broadcast|SendRecv|AllToAll|Reduce|all_?reduce|"
    r"all_?gather|reduce_?scatter|broadcast|all_?to_?all|cross_device_reduce|barrier"
)
_COLLECTIVE_NAMES = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "broadcast": "broadcast",
    "sendrecv": "send/receive",
    "alltoall": "all-to-all",
    "reduce": "reduce",
    "crossdevicereduce": "all-reduce",
    "barrier": "barrier",
}


@lru_cache(maxsize=10_000)
def kernel_kind(name: str) -> str:
    """The kind of a kernel of this demangled name, "other" where no pattern matches."""
    plain = _plain(name[:_LONGEST])
    return next((kind for kind, pattern in _patterns() if pattern.search(plain)), OTHER)


def collective(name: str) -> str:
    """What a communication kernel does, such as "all-reduce"; "communication" where unknown."""
    match = _COLLECTIVES.search(name)
    return _COLLECTIVE_NAMES[re.sub("_", "", match[0]).lower()] if match else COMMUNICATION


@lru_cache(maxsize=10_000)
def kernel_family(name: str) -> str:
    """What a kernel is a variant of: equal for kernels that differ in template arguments or tiles,
    and for those that a generator makes for one kind of work."""
    name = name[:_LONGEST]
    plain = _plain(name)
    made = (family for family, pattern in _families() if pattern.search(plain))
    return next(made, None) or _TILE.sub("", own_name(name))


def _plain(name: str) -> str:
    """A demangled name without return type, unnamed namespaces and parameters."""
    text = re.sub(r"(<unnamed>|\(anonymous namespace\))::", "", name.removeprefix("void "))
    depth = 0
    for place, character in enumerate(text):
        if character == "(" and not depth and place:
            return text[:place]
        depth += (character in "<([") - (character in ">)]" and text[place - 1] != "-")
    return text


def all_kinds() -> Iterable[str]:
    return (*(kind for kind, _ in _patterns()), OTHER)


@cache
def _families() -> tuple[tuple[str, re.Pattern[str]], ...]:
    rows = shipped_yaml("profkit.application", "kernel_kinds.yaml")["families"]
    return tuple((name, re.compile(pattern)) for name, pattern in rows.items())


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    rows = shipped_yaml("profkit.application", "kernel_kinds.yaml")["kinds"]
    return tuple((row["kind"], re.compile("|".join(row["match"]))) for row in rows)
