"""Lines and instructions of made-up kernels: sums, several files, what is missing."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.analysis.source_view import FIELDS, Blamed, Counts, SourceView, added, source_view
from profkit.machine_code.blame import Instruction
from tests.conftest import needs_reader

ALL = set(FIELDS)
NO_TEXT: Mapping[str, Sequence[str]] = {}
NOTHING: Blamed = {}


def row(address: int, file: str, line: int, sass: str = "NOP", **values: float) -> Instruction:
    return Instruction(address, sass, file, line, values)


def view(
    *rows: Instruction,
    present: Collection[str] = ALL,
    texts: Mapping[str, Sequence[str]] = NO_TEXT,
    findings: Blamed = NOTHING,
    addresses: Mapping[int, Collection[int]] | None = None,
) -> SourceView:
    return source_view(rows, present, texts, findings, addresses or {}, (9, 0))


def summed(counts: Sequence[Counts]) -> tuple[float, ...]:
    one = added(counts)
    return one.samples, one.executed, one.shared_excess, one.global_excess


ROWS = st.lists(
    st.builds(
        lambda file, line, samples, executed: (file, line, samples, executed),
        st.sampled_from(["a.cu", "b.h", ""]),
        st.integers(1, 4),
        st.integers(0, 50),
        st.integers(0, 10**12),
    ),
    max_size=40,
)


@given(rows=ROWS)
def test_lines_add_up_to_instructions_and_these_to_the_kernel(
    rows: list[tuple[str, int, int, int]],
) -> None:
    made = view(
        *(
            row(
                16 * at,
                file,
                line if file else 0,
                samples=float(samples),
                instructions_executed=float(executed),
                samples_wait=float(samples),
            )
            for at, (file, line, samples, executed) in enumerate(rows)
        ),
        texts={"a.cu": ["one", "two", "three", "four", "five"]},
    )
    instructions = list(made.instructions)
    of_lines = [line for file in made.files for line in file.lines]
    without = [one for one in made.instructions if not one.line]
    assert summed([made.total]) == summed(instructions) == summed([*of_lines, *without])
    assert made.total.samples == sum(samples for *_, samples, _ in rows)
    assert made.total.executed == sum(executed for *_, executed in rows)
    assert made.total.stalls.get("wait", 0) == made.total.samples
    count = sum(line.instructions for file in made.files for line in file.lines)
    assert count == sum(bool(one.line) for one in made.instructions)


def test_inlined_code_stands_in_the_file_it_is_written_in() -> None:
    made = view(
        row(0, "kernel.cu", 3, samples=1.0),
        row(16, "helper.h", 7, samples=5.0),
        row(32, "kernel.cu", 3, samples=2.0),
        texts={"kernel.cu": ["", "", "call();"]},
    )
    assert [file.file for file in made.files] == ["helper.h", "kernel.cu"]
    helper, kernel = made.files
    assert [line.line for line in helper.lines] == [7]
    assert helper.lines[0].text is None
    assert [line.line for line in kernel.lines] == [1, 2, 3]
    assert kernel.lines[2].samples == 3
    assert kernel.lines[2].instructions == 2
    assert kernel.lines[0].samples == 0
    assert made.has_source


@needs_reader
def test_what_was_not_recorded_is_not_0() -> None:
    made = view(row(0, "a.cu", 1, instructions_executed=4.0), present={"instructions_executed"})
    counts = made.files[0].lines[0]
    assert counts.executed == made.total.executed == 4
    assert math.isnan(counts.samples)
    assert math.isnan(made.total.samples)
    assert counts.stalls == {}
    assert math.isnan(counts.shared_excess)
    assert made.notes == ("source text not recorded: record with `ncu --import-source yes`",)


def test_a_recorded_metric_without_a_value_here_is_0() -> None:
    assert view(row(0, "a.cu", 1)).total.samples == 0


@needs_reader
def test_machine_code_alone_where_no_line_is_known() -> None:
    made = view(row(0, "", 0, "LDG.E R0, [R2.64]", samples=2.0), row(16, "", 0, "EXIT"))
    assert made.files == ()
    assert not made.has_source
    assert made.notes == ("no source line information: compile with -lineinfo",)
    assert [one.live for one in made.instructions] == [2, 0]
    assert made.total.live == 2


@needs_reader
def test_live_registers_are_not_known_where_code_is_missing() -> None:
    made = view(row(0, "a.cu", 1, "MOV R0, R1"), row(16, "a.cu", 2, ""))
    assert math.isnan(made.total.live)
    assert any("1 of 2 instructions have no SASS" in note for note in made.notes)


@pytest.mark.parametrize(
    ("blamed", "lines", "instructions"),
    [
        ({("a.cu", 1): (1, 3)}, [(1, 3), ()], [(1, 3), (3,), (), ()]),
        ({("", 48): (2,)}, [(), ()], [(), (), (), (2,)]),
    ],
)
def test_findings_stand_beside_what_they_blame(
    blamed: Blamed,
    lines: list[tuple[int, ...]],
    instructions: list[tuple[int, ...]],
) -> None:
    made = view(
        row(0, "a.cu", 1),
        row(16, "a.cu", 1),
        row(32, "", 0, "LDS R0,  [R1]"),
        row(48, "", 0, "LDS R0,  [R1]"),
        texts={"a.cu": ["x", "y"]},
        findings=blamed,
        addresses={1: {0}, 3: {0, 16}},
    )
    assert [line.findings for line in made.files[0].lines] == lines
    assert [one.findings for one in made.instructions] == instructions
