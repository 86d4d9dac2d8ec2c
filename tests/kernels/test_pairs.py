"""The defect/fix pairs: each is whole, names its defect, and compiles for its architectures."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
import yaml

from kernels import pair
from profkit import Work
from profkit.capture.correctness import BOUNDS
from profkit.capture.cuda_source import compile_kernel, compiler_version
from profkit.capture.target import load_target
from profkit.core.errors import BadInput, EnvironmentProblem, UsageError
from profkit.rules.samples import CATEGORIES
from tests.conftest import NIGHTLY, ROOT
from tests.emulator import missing
from tests.emulator.kernel import EmulatedKernel

SCHEMA = jsonschema.Draft202012Validator(
    json.loads((pair.PAIRS / "pair.schema.json").read_text(encoding="utf-8"))
)
MISSING = missing()
LONG_REFERENCE = {  # on a CPU: seconds each; at night only
    "accurate_transcendentals",
    "adjacency_blocks",
    "alignment_block_barrier",
    "basket_paths",
    "beam_powers",
    "cable_steps",
    "chacha_unrolled",
    "charmm_switch_branches",
    "cluster_forces",
    "column_blocks",
    "convolution3d_row_blocks",
    "day_side",
    "demons_clamped_taps",
    "dependent_chain",
    "depthwise_channel_lanes",
    "edit_distances",
    "expression_interpreter",
    "ffma_gemm",
    "fingerprint_bit_counts",
    "fragments_from_global",
    "galaxy_exact_root",
    "hexahedra_one_per_block",
    "highpass_one_row",
    "histogram_distances_one_query",
    "hologram_scalar_stores",
    "index_lookups",
    "joint_chain",
    "large_kernel_convolution",
    "lens_points_unfused",
    "limb_products",
    "lower_triangle",
    "material_states",
    "mish_double_literal",
    "nearest_points",
    "neutron_grid_search",
    "quantized_search",
    "query_blocking",
    "rate_fits",
    "read_shifts",
    "repeated_exponentials",
    "rounding_by_conversion",
    "scenario_prices",
    "seawater_inverse",
    "shadow_march",
    "shortest_paths_shared_operands",
    "winograd_register_cap",
}
UNFOLDED = {"integer_division"}  # in double precision, to 3 GB


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
    SCHEMA.validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    one = pair.read(name)
    target = one.target()
    assert [variant.name for variant in target.variants] == list(one.sides)
    if one.category is None:
        assert not one.launches["after"]
        return
    assert one.category in CATEGORIES
    assert one.second_limit is None or one.second_limit in CATEGORIES
    assert one.fix
    if one.launches["before"]:
        assert one.line is not None
    else:
        assert "def before(" in sides_of(one)
        assert "def after(" in sides_of(one)


def sides_of(one: pair.Pair) -> str:
    """The source of the sides of a pair without launches."""
    return (one.folder / "sides.py").read_text(encoding="utf-8")


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
@pytest.mark.parametrize("name", pair.names() if NIGHTLY else pair.names()[::3])
def test_a_pair_compiles_for_its_architectures(name: str) -> None:
    """By day a third of the pairs, for one of them: a kernel changes only when it is recorded
    again."""
    one = pair.read(name)
    for side in one.sides:
        for launch in one.launches[side]:
            architectures = one.architectures[side]
            by_day = architectures[pair.names().index(name) % len(architectures)]
            for arch in architectures if NIGHTLY else [by_day]:
                path = one.folder / launch.file
                kernel = compile_kernel(path, launch.kernel, arch=arch, defines=launch.defines)
                assert kernel.cubin.startswith(b"\x7fELF")


def small(one: pair.Pair) -> bool:
    """Whether some blocks of it can be run and judged on a CPU in a second or two."""
    tensors = [*one.inputs.values(), *one.scratch.values(), one.output]
    elements = sum(math.prod(tensor.shape) for tensor in tensors)
    alone = all(len(one.launches[side]) == 1 for side in one.sides)
    return (
        elements < 3e7
        and alone
        and not one.output.zeroed
        and (NIGHTLY or one.name not in LONG_REFERENCE)
    )


SMALL = [name for name in pair.names() if small(pair.read(name))]


@pytest.mark.skipif(bool(MISSING), reason=str(MISSING))
@pytest.mark.parametrize("name", SMALL if NIGHTLY else SMALL[::6])
def test_some_blocks_of_a_pair_are_right(name: str) -> None:
    """By day those of a sixth: a kernel changes only when it is recorded again."""
    torch = pytest.importorskip("torch", reason="pairs are built with torch")
    one = pair.read(name)
    target = one.target()
    inputs = target.inputs("cpu", 1)
    exact = (
        inputs
        if name in UNFOLDED
        else {key: x.double() if x.is_floating_point() else x for key, x in inputs.items()}
    )
    reference = target.reference(exact).reshape(one.output.shape)
    for side in one.sides:
        (launch,) = one.launches[side]
        out = torch.full(one.output.shape, math.nan, dtype=getattr(torch, one.output.dtype))
        scratch = {key: torch.empty(x.shape) for key, x in one.scratch.items()}
        kernel = EmulatedKernel(
            one.folder / launch.file,
            launch.kernel,
            launch.defines,
            read_only=tuple(inputs.values()),
            blocks=lambda count: sorted({0, count // 2, count - 1}),
        )
        tensors = {**inputs, **scratch, "out": out}
        passed = [pair._passed(argument, tensors) for argument in launch.arguments]
        kernel.launch(launch.grid, launch.block, *passed, shared_bytes=launch.shared_bytes)
        written = ~out.isnan()
        assert written.any()
        difference = out[written].double() - reference[written]
        assert difference.norm() <= BOUNDS[one.dtype] * reference[written].norm()


IN_TORCH = [
    name
    for name in pair.names()
    if (pair.PAIRS / name / "sides.py").is_file() and "triton" not in sides_of(pair.read(name))
]


@pytest.mark.parametrize("name", IN_TORCH)
def test_a_pair_in_torch_is_right(name: str) -> None:
    pytest.importorskip("torch", reason="pairs are built with torch")
    one = pair.read(name)
    if sum(math.prod(tensor.shape) for tensor in [*one.inputs.values(), one.output]) > 3e7:
        pytest.skip("too large for a CPU; checked when it is recorded")
    target = one.target()
    inputs = target.inputs("cpu", 1)
    exact = {key: x.double() if x.is_floating_point() else x for key, x in inputs.items()}
    reference = target.reference(exact)
    for variant in target.variants:
        difference = variant.run(inputs).double() - reference
        assert difference.norm() <= BOUNDS[one.dtype] * reference.norm()


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


def test_an_ill_formed_pair_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "pair.yaml").write_text("name: other\ninputs: {}\n", encoding="utf-8")
    monkeypatch.setattr(pair, "PAIRS", tmp_path)
    with pytest.raises(BadInput, match=r"bad/pair.yaml: name 'other'"):
        pair.read("bad")


WITH_WORK = [name for name in pair.names() if pair.read(name).work]


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("ffma_gemm", Work.gemm(4096, 4096, 2048, element_bytes=2)),
        ("attention_head_order", Work.attention(1, 160, 4096, 64, element_bytes=2)),
        (
            "causal_tile_order",
            Work.attention(1, 16, 8192, 64, kv_heads=4, element_bytes=2, causal=True),
        ),
        # five tensors of the step and two moments that it stores, 12 operations an element
        ("adam_eager", Work(2.013265920e8, 4.69762048e8)),
    ],
)
def test_a_pair_declares_its_work_as_a_target_would(name: str, work: Work) -> None:
    declared = pair.read(name).target().work
    assert declared
    assert declared.what
    assert (declared.flop, declared.bytes) == pytest.approx((work.flop, work.bytes))


@pytest.mark.parametrize("name", WITH_WORK)
def test_declared_work_moves_its_output_at_least(name: str) -> None:
    one = pair.read(name)
    assert one.work
    assert one.work.what
    assert one.work.flop > 0
    size = {"float16": 2, "float32": 4}[one.output.dtype]
    assert one.work.bytes >= size * math.prod(one.output.shape)


def test_work_that_is_no_arithmetic_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = pair.PAIRS / "control_fma"
    shutil.copytree(source, tmp_path / "control_fma")
    file = tmp_path / "control_fma" / "pair.yaml"
    text = file.read_text(encoding="utf-8").replace("8192 * 1081344", "8192 * threads")
    file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(pair, "PAIRS", tmp_path)
    with pytest.raises(BadInput, match="'threads' is no number"):
        pair.read("control_fma")


def test_a_misspelled_pair_is_answered_by_the_closest() -> None:
    with pytest.raises(UsageError, match="did you mean no_unrolling"):
        load_target(ROOT / "targets" / "pair.py", ["no_unroling"])
