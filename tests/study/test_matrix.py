"""Matrices of shapes: what the checked-in ones hold, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from profkit.core.errors import BadInput, UsageError
from profkit.study.matrix import MatrixShape, matrix_of, read_matrix
from profkit.timing.cell import Value
from tests.conftest import ROOT

MATRICES = ROOT / "targets" / "matrices"
PUBLISHED = ROOT.parent / "shared" / "facts" / "published.yaml"


def numbers(shape: MatrixShape) -> dict[str, int]:
    return {name: one for name, one in shape.arguments.items() if isinstance(one, int)}


def test_the_paper_has_2048_features_and_16k_tokens() -> None:
    shapes = [numbers(shape) for shape in read_matrix(MATRICES / "attention_paper.yaml").shapes]
    plain = [shape for shape in shapes if "kv_heads" not in shape]
    assert len(plain) == 6 * 2 * 2
    assert {shape["heads"] * shape["dim"] for shape in plain} == {2048}
    assert {shape["batch"] * shape["length"] for shape in plain} == {16384}
    assert {shape["length"] for shape in plain} == {512 * 2**at for at in range(6)}
    grouped = [shape for shape in shapes if "kv_heads" in shape]
    assert [shape["length"] for shape in grouped] == [2048, 4096, 8192, 16384, 32768]
    assert {(shape["heads"], shape["kv_heads"], shape["dim"]) for shape in grouped} == {
        (64, 8, 128)
    }


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="published figures are not here")
def test_the_study_has_the_published_shapes_in_their_order() -> None:
    published = yaml.safe_load(PUBLISHED.read_text("utf-8"))["l4_sdpa_study"]["configs"]
    shapes = read_matrix(MATRICES / "l4_study.yaml").shapes
    names = ("batch", "heads", "length", "dim")
    assert [[shape.arguments[name] for name in names] for shape in shapes] == [
        config[:4] for config in published
    ]


def test_a_shape_as_a_command_line_and_as_a_name() -> None:
    sizes: dict[str, Value] = {
        "length": 64, "causal": True, "backward": False, "kv_heads": 2, "dtype": "bfloat16"
    }  # fmt: skip
    (shape,) = matrix_of("m", "", [sizes]).shapes
    assert shape.words == (
        "--length", "64", "--causal", "--kv-heads", "2", "--dtype", "bfloat16"
    )  # fmt: skip
    assert shape.name == "kv2-s64-bf16-causal"
    assert matrix_of("m", "", [{}]).shapes[0].name == "as-declared"
    assert matrix_of("m", "", [{"mode": "../x y"}]).shapes[0].name == "mode.._x_y"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("groups: [", "not YAML"),
        ("[1, 2]", "profkit.matrix/1"),
        ("{schema: profkit.matrix/1, name: x, groups: []}", "groups"),
        ("{schema: profkit.matrix/2, name: x, groups: [{vary: {n: [1]}}]}", "profkit.matrix/1"),
        ("{schema: profkit.matrix/1, name: x, groups: [{vary: {n: []}}]}", "groups[0].vary['n']"),
        ("{schema: profkit.matrix/1, name: x, groups: [{vari: {n: [1]}}]}", "vari"),
        ("{schema: profkit.matrix/1, name: x, groups: [{vary: {n: [1, 1]}}]}", "the shape n1 "),
        ("{schema: profkit.matrix/1, name: x, groups: [{vary: {-n: [1]}}]}", "'-n'"),
        ("{schema: profkit.matrix/1, name: x, groups: [{with: {n: {}}}]}", "groups[0].with['n']"),
    ],
)
def test_what_is_no_matrix_is_refused_in_a_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as error:
        read_matrix(path)
    assert words in error.value.message
    assert str(path) in error.value.message
    assert "\n" not in str(error.value)


def test_too_many_shapes_are_refused_before_they_are_made(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    many = ", ".join(f"{name}: [{', '.join(map(str, range(100)))}]" for name in "abcdefgh")
    path.write_text(
        f"{{schema: profkit.matrix/1, name: x, groups: [{{vary: {{{many}}}}}]}}", encoding="utf-8"
    )
    with pytest.raises(BadInput, match="shapes in a group"):
        read_matrix(path)
    with pytest.raises(UsageError, match="0 shapes"):
        matrix_of("m", "", [])
