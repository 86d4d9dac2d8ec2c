"""Switches of kernels: what may make one faster without an edit of its file, by its name.

A name has all that a switch needs, so that those of a run can be combined in another: `unroll-8`,
`max-registers-64`, or NAME-VALUE for a constant of CUDA source or a constexpr of a Triton kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from profkit.capture.cuda_source import Build
from profkit.core.typed_file import Model
from profkit.recompilation import source_edits as edits

PROGRAM = "profkit.recompilation.kernel_worker"
Changes = Literal["nothing", "rounding"]
"""What a switch changes of correct results: nothing, or their rounding."""


class Offer(Model, frozen=True):
    """A switch that applies to a kernel: what it changes of results, and how to keep it."""

    name: str
    changes: Changes
    keep: str


_FIXES: Mapping[str, tuple[str, ...]] = {
    "restrict": ("memory_latency",),
    "unroll": ("memory_latency", "instruction_overhead", "instruction_cache"),
    "blocks-per-sm": ("register_spills", "occupancy_registers"),
    "max-registers": ("register_spills", "occupancy_registers"),
    "padded-rows": ("shared_bank_conflicts",),
    "fused-multiply-add": ("non_fused_arithmetic",),
    "float-literals": ("fp64_in_use",),
    "cached-loads": ("cache_locality", "l2_bandwidth"),
    "fast-math": ("special_functions",),
    "carveout": ("occupancy_shared_memory", "cache_locality"),
    "num_warps": ("occupancy_block_size", "register_spills"),
    "num_stages": ("memory_latency", "tensor_underfed"),
}
"""The categories that switches are fixes of. What a constant changes is not known by its name."""


def fixed_by(switches: Iterable[str]) -> tuple[str, ...]:
    """The categories that switches are fixes of."""
    kinds = (name if name in _FIXES else name.rpartition("-")[0] for name in switches)
    return tuple(dict.fromkeys(each for kind in kinds for each in _FIXES.get(kind, ())))


class _Switch(Struct, frozen=True):
    """What a switch changes of how a kernel is compiled: its source, or options."""

    change: edits.Edit | Build
    keep: str
    changes: Changes = "nothing"


_SWITCHES: Mapping[str, _Switch] = {
    "restrict": _Switch(
        edits.without_aliases, "write `* __restrict__` for the pointers, if none overlap"
    ),
    **{
        f"unroll-{times}": _Switch(
            edits.unrolled(times), f"write `#pragma unroll {times}` before the innermost loops"
        )
        for times in (1, 2, 4, 8, 16)
    },
    **{
        f"blocks-per-sm-{blocks}": _Switch(
            edits.bounded(blocks),
            f"write {blocks} as the second argument of __launch_bounds__"
            if blocks
            else "leave out the second argument of __launch_bounds__",
        )
        for blocks in (0, 1, 2, 3, 4, 6, 8)
    },
    "padded-rows": _Switch(edits.padded, "make rows of shared arrays, or their pitch, one longer"),
    "fused-multiply-add": _Switch(
        edits.contracted, "write a * b + c in place of __fmul_rn and __fadd_rn", "rounding"
    ),
    "float-literals": _Switch(edits.in_float, "write 1.0f in place of 1.0", "rounding"),
    "cached-loads": _Switch(edits.cached, "load without __ldcg, __ldcs, __ldcv and __ldlu"),
    "fast-math": _Switch(Build(fast_math=True), "compile with -use_fast_math", "rounding"),
    **{
        f"max-registers-{most}": _Switch(
            Build(registers=most), f"compile with -maxrregcount={most}"
        )
        for most in (32, 40, 64, 96, 128)
    },
    "l1-bypass": _Switch(Build(ptxas=("-dlcm=cg",)), "compile with -Xptxas -dlcm=cg"),
    **{
        f"carveout-{share}": _Switch(
            Build(carveout=share), f"set cudaFuncAttributePreferredSharedMemoryCarveout to {share}"
        )
        for share in (0, 50, 100)
    },
}
_VALUE = re.compile(r"(?P<name>\w+)-(?P<value>\d+)")
_TRITON: Mapping[str, Sequence[int]] = {"num_warps": (1, 2, 4, 8, 16), "num_stages": range(1, 6)}
_MOST_CONSTANTS = 8  # of a source, chosen: each has two or three values to try
_FURTHER = 6, 2  # times that a constant which gains is halved or doubled on, chosen


def offers_for_source(texts: Iterable[str]) -> Iterator[Offer]:
    """The switches that change how these sources are compiled; none without a source."""
    texts = list(texts)
    for name, switch in _SWITCHES.items():
        change = switch.change
        if any(isinstance(change, Build) or change(text) != text for text in texts):
            yield Offer(name, switch.changes, switch.keep)
    known = {name: value for text in texts for name, value in edits.constants(text)}
    for name, value in [*known.items()][:_MOST_CONSTANTS]:
        for other in _others(value):
            yield Offer(f"{name}-{other}", "nothing", f"set {name} to {other}")


def offers_for_triton(constants: Mapping[str, int]) -> Iterator[Offer]:
    """The switches of a Triton kernel that was launched with these values."""
    for name, value in constants.items():
        for other in _TRITON.get(name, _others(value)):
            if other != value:
                yield Offer(f"{name}-{other}", "nothing", f"launch with {name}={other}")


def _others(value: int) -> Sequence[int]:
    """Other values of a constant to try: half, twice and, of a small one, four times."""
    values = [value // 2, 2 * value, *([4 * value] if value < 8 else [])]
    return [each for each in values if each > 0]


def further(name: str, offered: Mapping[str, Offer]) -> Iterator[Offer]:
    """The values of a constant beyond one that gains, if none beyond it was offered."""
    match = _VALUE.fullmatch(name)
    if not match or name in _SWITCHES or match["name"] in _TRITON:
        return
    value, stem = int(match["value"]), name[: match.start("value")]
    alike = (_VALUE.fullmatch(each) for each in offered if each.startswith(stem))
    known = sorted(int(each["value"]) for each in alike if each)
    others: list[int] = []
    if value == known[0] <= known[-1] // 4:  # else the constant is 1, of which there is no half
        others = [value >> times for times in range(1, _FURTHER[0] + 1)]
    elif value == known[-1] > known[0]:  # else there is no knowing on which side it is
        others = [value << times for times in range(1, _FURTHER[1] + 1)]
    for other in filter(None, others):
        keep = offered[name].keep.removesuffix(str(value)) + str(other)
        yield replace(offered[name], name=f"{stem}{other}", keep=keep)


def build_of(names: Iterable[str]) -> tuple[Build, Mapping[str, int]]:
    """How kernels are compiled with these switches, and the values of Triton's constants."""
    applied: list[edits.Edit] = []
    build, values = Build(), {}
    for name in names:
        if name in _SWITCHES:
            change = _SWITCHES[name].change
            if isinstance(change, Build):
                options = asdict(change).items() - asdict(Build()).items()
                build = replace(build, **dict(options))
            else:
                applied.append(change)
        elif match := _VALUE.fullmatch(name):
            values[match["name"]] = int(match["value"])
            applied.append(edits.with_constant(match["name"], int(match["value"])))

    def edit(text: str) -> str:
        for each in applied:
            text = each(text)
        return text

    return replace(build, edit=edit), values
