"""Machine code without counts: of a launch, and of the same kernel's cubin."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from profkit.analysis.report import load
from profkit.report.cubin import cubin_code, function_name, launch_code, read_cubin
from tests import wire
from tests.conftest import CORPUS, H200, needs_corpus

_CUBIN = 4  # of a source (Nsight Compute Customization Guide, "File Format")


def recorded_cubin(report: Path, file: Path, launch: int = 0) -> Path:
    """The cubin of a report's launch, written to a file."""
    action = load(report).kernel(launch)._action
    source = next(action._file.sources(action.message.sources()))
    file.write_bytes(wire.decode(source)[_CUBIN][0])  # type: ignore[arg-type]
    return file


@pytest.mark.parametrize(
    ("place", "index", "kernels"),
    [
        ("pairs/tail_effect/before.ncu-repz", 0, 1),
        ("pairs/reduction_conflicts/before.ncu-repz", 0, 1),
        ("sdpa_s512/*/sdpa_s512.ncu-repz", 9, 241),
        ("sdpa_s512/*/sdpa_s512.ncu-repz", 16, 241),
    ],
)
def test_a_cubin_has_the_code_of_the_launch_that_ran_it(
    tmp_path: Path, place: str, index: int, kernels: int
) -> None:
    (report,) = H200.glob(place)
    launch = load(report).kernel(index)
    cubin = read_cubin(recorded_cubin(report, tmp_path / "kernel.cubin", index))
    assert cubin
    assert len(cubin.kernels) == kernels
    kernel = cubin.kernels[launch.summary.launch.function]
    assert kernel.registers == launch["registers_per_thread"]
    ran = launch_code(launch._action)
    compiled = cubin_code(cubin, launch.summary.launch.function, (9, 0))
    assert ran
    assert compiled
    assert [step.opcode for step in compiled.operations] == [step.opcode for step in ran.operations]
    assert [block.successors for block in compiled.blocks] == [b.successors for b in ran.blocks]


@needs_corpus
@pytest.mark.parametrize(
    ("name", "cc"),
    [
        ("Cartoonizer__gtx1660_7C.ncu-repz", (7, 5)),
        ("cs599k__silu_77_06.ncu-repz", (8, 0)),
        ("ESMM-Research__profile_feb2d349.ncu-rep", (8, 6)),
        ("NetworkSim__profile.ncu-repz", (8, 9)),
    ],
)
def test_cubins_of_older_architectures_are_read(
    tmp_path: Path, name: str, cc: tuple[int, int]
) -> None:
    (report,) = CORPUS.rglob(name)
    launch = load(report).kernel(0)
    cubin = read_cubin(recorded_cubin(report, tmp_path / "kernel.cubin"))
    assert cubin
    function = launch.summary.launch.function
    (mangled,) = (name for name in cubin.kernels if f"{len(function)}{function}" in name)
    kernel = cubin.kernels[mangled]
    assert kernel.registers == launch["registers_per_thread"]
    compiled, ran = cubin_code(cubin, mangled, cc), launch_code(launch._action)
    assert compiled
    assert ran
    assert [step.opcode for step in compiled.operations] == [step.opcode for step in ran.operations]


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02", b"\x7fELF\x02" + bytes(60), b"text"])
def test_what_is_no_cubin_is_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.cubin"
    file.write_bytes(content)
    assert read_cubin(file) is None
    assert read_cubin(tmp_path / "missing.cubin") is None


@needs_corpus
@pytest.mark.parametrize(
    ("name", "launch"),
    [
        ("mixes-reconstruction__full_profile.ncu-rep", 0),
        ("mixes-reconstruction__full_profile.ncu-rep", 1),
        ("seq_align__profile.ncu-repz", 0),
    ],
)
def test_code_starts_where_each_warp_does_and_not_in_a_function_it_calls(
    name: str, launch: int
) -> None:
    kernel = load(CORPUS / name).kernel(launch)
    flow = launch_code(kernel._action)
    executed = kernel._action.metric_by_name("inst_executed")
    assert flow
    assert executed
    counts = dict(zip(*executed.instances, strict=True))
    warps = math.prod(kernel.summary.grid) * math.ceil(math.prod(kernel.summary.block) / 32)
    assert counts[flow.addresses[0]] == warps


@pytest.mark.parametrize(
    ("mangled", "name"),  # as c++filt says
    [
        ("_Z3addPf", "add"),
        ("_Z13add_somethingPf", "add_something"),
        ("_ZL3addPKfi", "add"),
        ("_ZN3add5scaleEPf", "scale"),
        ("_ZN12_GLOBAL__N_13addEPf", "add"),
        ("_Z4fillIfEvPT_S0_i", "fill"),
        (
            "_ZN2at6native29vectorized_elementwise_kernelILi4EfEEvif",
            "vectorized_elementwise_kernel",
        ),
        ("_ZNSt3add5scaleEv", "scale"),
        ("add_kernel", "add_kernel"),
    ],
)
def test_the_function_of_a_mangled_name(mangled: str, name: str) -> None:
    assert function_name(mangled) == name
