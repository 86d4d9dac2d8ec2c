"""The defect/fix pairs: each is whole, names its defect, and compiles for its architectures."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
import yaml

from kernels import pair
from profkit.analysis.rules import schema as rules_schema
from profkit.capture.cuda_source import compile_kernel, compiler_version
from profkit.errors import BadInput, EnvironmentProblem

SCHEMA = json.loads((pair.PAIRS / "pair.schema.json").read_text(encoding="utf-8"))
CATEGORIES = rules_schema()["$defs"]["rule"]["properties"]["category"]["enum"]


def has_compiler() -> bool:
    try:
        return bool(compiler_version())
    except EnvironmentProblem:
        return False


def test_there_are_enough() -> None:
    pairs = [pair.read(name) for name in pair.names()]
    assert sum(one.category is not None for one in pairs) >= 28
    assert sum(one.category is None for one in pairs) >= 3
    assert len({one.category for one in pairs}) >= 22


@pytest.mark.parametrize("name", pair.names())
def test_a_pair_is_whole(name: str) -> None:
    file = pair.PAIRS / name / "pair.yaml"
    jsonschema.validate(yaml.safe_load(file.read_text(encoding="utf-8")), SCHEMA)
    one = pair.read(name)
    target = one.target()
    assert [variant.name for variant in target.variants] == list(one.sides)
    if one.category is None:
        assert not one.launches["after"]
        return
    assert one.category in CATEGORIES
    assert one.second_limit is None or one.second_limit in CATEGORIES
    assert one.fix
    assert one.line is not None


@pytest.mark.parametrize("name", pair.names())
def test_a_launch_names_tensors_that_there_are(name: str) -> None:
    one = pair.read(name)
    known = {"out", *one.inputs, *one.scratch}
    for launches in one.launches.values():
        for launch in launches:
            named = {argument for argument in launch.arguments if isinstance(argument, str)}
            assert named <= known
            assert (one.folder / launch.file).is_file()


@pytest.mark.skipif(not has_compiler(), reason="NVRTC is not installed")
@pytest.mark.parametrize("name", pair.names())
def test_a_pair_compiles_for_its_architectures(name: str) -> None:
    one = pair.read(name)
    for side in one.sides:
        for launch in one.launches[side]:
            for arch in one.architectures[side]:
                path = one.folder / launch.file
                kernel = compile_kernel(path, launch.kernel, arch=arch, defines=launch.defines)
                assert kernel.cubin.startswith(b"\x7fELF")


def test_most_pairs_compile_for_both_generations() -> None:
    named = Counter(
        arch
        for name in pair.names()
        for side, listed in pair.read(name).architectures.items()
        for arch in listed
    )
    assert named["sm_80"] > 50
    assert named["sm_90a"] > 50


def test_a_pair_that_there_is_not() -> None:
    with pytest.raises(BadInput, match="there are"):
        pair.read("none_such")


def test_an_ill_formed_pair_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "pair.yaml").write_text("name: other\ninputs: {}\n", encoding="utf-8")
    monkeypatch.setattr(pair, "PAIRS", tmp_path)
    with pytest.raises(BadInput, match=r"bad/pair.yaml: name 'other'"):
        pair.read("bad")
