"""Machine code without counts: of a launch, and of the same kernel's cubin."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.analysis.report import load
from profkit.report import wire
from profkit.report.machine_code import cubin_code, launch_code, read_cubin
from tests.conftest import H200

_CUBIN = 4  # of a source (Nsight Compute Customization Guide, "File Format")


def recorded_cubin(report: Path, file: Path) -> Path:
    """The cubin of a report's first launch, written to a file."""
    action = load(report).kernel(0)._action
    (source,) = action._file.sources(action.message.sources())
    file.write_bytes(wire.decode(source)[_CUBIN][0])  # type: ignore[arg-type]
    return file


@pytest.mark.parametrize("pair", ["tail_effect", "reduction_conflicts"])
def test_a_cubin_has_the_code_of_the_launch_that_ran_it(tmp_path: Path, pair: str) -> None:
    report = H200 / "pairs" / pair / "before.ncu-repz"
    launch = load(report).kernel(0)
    cubin = read_cubin(recorded_cubin(report, tmp_path / "kernel.cubin"))
    assert cubin
    kernel = cubin.kernels[launch.summary.launch.function]
    assert kernel.registers == launch["registers_per_thread"]
    ran = launch_code(launch._action)
    compiled = cubin_code(cubin, launch.summary.launch.function, (9, 0))
    assert ran
    assert compiled
    assert [step.opcode for step in compiled.operations] == [step.opcode for step in ran.operations]
    assert [block.successors for block in compiled.blocks] == [b.successors for b in ran.blocks]


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02", b"\x7fELF\x02" + bytes(60), b"text"])
def test_what_is_no_cubin_is_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.cubin"
    file.write_bytes(content)
    assert read_cubin(file) is None
    assert read_cubin(tmp_path / "missing.cubin") is None
