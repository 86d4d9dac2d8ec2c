"""What an expert sees at first sight, of made-up steps with kernels as libraries name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from profkit.application.application import Application, read_application
from profkit.application.causes import findings, quantities
from profkit.application.groups import explained_of_gpu, explained_share
from profkit.application.steps import steady_steps
from profkit.rules.finding import Finding
from profkit.rules.rule_file import NO_SWITCH, shipped_rules
from profkit.timeline.events import Events
from tests.application.stories import Step, recorded, step_time
from tests.application.synthetic import US, Host

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>(int)"
NORM = "void at::native::<unnamed>::vectorized_layer_norm_kernel<float, float>(int)"
LERP = "void at::native::vectorized_elementwise_kernel<4, at::native::lerp_scalar_kernel>(int)"
ADDCDIV = "void at::native::vectorized_elementwise_kernel<4, at::native::addcdiv_cuda_kernel>(int)"
SOFTMAX = "void <unnamed>::softmax_warp_forward<float, float, float, 9, false, false>(float *)"
LOSS = (
    "void at::native::<unnamed>::cunn_SoftMaxForward<4, float, LogSoftMaxForwardEpilogue>(float *)"
)
FUSED = "void at::native::<unnamed>::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata>(T)"
PLANAR = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16"
TOGETHER = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16"
TO_NHWC = "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false>(T)"
SGEMM = "ampere_sgemm_128x128_tn"
TF32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4"
BF16 = "nvjet_sm90_tst_128x128_64x6_1x2_h_bz_TNT"
ALIGNED = "void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_bf16_128x64_64x6_nt_align8>(T)"
UNALIGNED = "void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_bf16_128x64_64x6_nt_align1>(T)"
FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>(T)"
GATHER = "void at::native::vectorized_gather_kernel<16, long>(char *)"
TIMES = "void at::native::elementwise_kernel<128, 2, BinaryFunctor<float, MulFunctor<float>>>(int)"
SCATTER = "void at::native::indexFuncLargeIndex<float, long, 2, at::native::ReduceAdd>(T)"
INDEX = "void at::native::index_elementwise_kernel<128, 4, at::native::index_kernel_impl<4>>(T)"
DOUBLE = "cupy_multiply__float64_float64_float64"


def of(*kernels: tuple[str, int], python: int = 0) -> Step:
    """A step of kernels, each with its µs, launched by a host that takes as long for each."""

    def step(host: Host, _: int) -> None:
        for name, time in kernels:
            host.compute(python * US)
            host.launch(name, time * US)

    return step


STEPS: Mapping[str, tuple[Step, Step]] = {
    "tf32_unused": (of((SGEMM, 900), (NORM, 100)), of((TF32, 150), (NORM, 100))),
    "half_precision_unused": (of((TF32, 900), (NORM, 100)), of((BF16, 460), (NORM, 50))),
    "double_precision": (of((DOUBLE, 400), (DOUBLE, 500)), of((GELU, 200), (ADD, 250))),
    "layout_conversion": (
        of((TO_NHWC, 150), (PLANAR, 500), (TO_NHWC, 150), (BF16, 200)),
        of((TOGETHER, 400), (BF16, 200)),
    ),
    "unfused_kernels": (
        of(*[(BF16, 100), (ADD, 80), (GELU, 80), (NORM, 90)] * 4),
        of(*[(BF16, 100), ("triton_per_fused_add_gelu_0", 95)] * 4),
    ),
    "unfused_optimizer": (
        of((BF16, 300), *[(LERP, 9), (ADDCDIV, 12), (ADD, 9)] * 30),
        of((BF16, 300), (FUSED, 390)),
    ),
    "unfused_attention": (
        of(*[(BF16, 100), (ADD, 150), (SOFTMAX, 200), (BF16, 100)] * 3),
        of(*[(FLASH, 210)] * 3),
    ),
    "materialized_messages": (
        of(*[(BF16, 100), (GATHER, 300), (TIMES, 400), (SCATTER, 500)] * 3),
        of(*[(BF16, 100), ("void cusparse::csrmm_kernel<float>(T)", 170)] * 3),
    ),
    "small_products": (of(*[(BF16, 3)] * 60, python=5), of((BF16, 30), (BF16, 30), python=5)),
    "unaligned_products": (of((UNALIGNED, 800), (BF16, 200)), of((ALIGNED, 450), (BF16, 200))),
}
"""By rule a step that it finds, and the same after the change."""


def named(events: Events) -> dict[str, Finding]:
    return {item.rule.name: item for item in findings(events, shipped_rules())}


@pytest.mark.parametrize("rule", STEPS)
def test_it_is_found_with_a_range_that_has_its_gain(rule: str) -> None:
    before, after = STEPS[rule]
    item = named(recorded(before))[rule]
    gained = step_time(before) / step_time(after)
    assert item.range[0] <= gained <= item.range[1] * 1.03
    assert item.evidence


@pytest.mark.parametrize("rule", STEPS)
def test_it_is_not_found_after_the_change(rule: str) -> None:
    assert rule not in named(recorded(STEPS[rule][1]))


@pytest.mark.parametrize("rule", [rule for rule in shipped_rules() if rule.switches])
def test_switches_are_names_with_hyphens(rule: object) -> None:
    assert all(name == name.lower() and "_" not in name for name in rule.switches)  # type: ignore[attr-defined]


PROGRAMS: Mapping[str, Step] = {
    "torch": of(*[(SGEMM, 200), (ADD, 9), (GELU, 9), (NORM, 9)] * 9, python=30),
    "jax": of(*[(SGEMM, 200), ("loop_add_fusion", 9), ("wrapped_tanh", 9)] * 9, python=30),
    "cupy": of(*[(SGEMM, 200), ("cupy_add__float64_float64", 9), (DOUBLE, 9)] * 9, python=30),
    "numba": of(
        *[("cudapy::__main__::step[abi:v1](Array<float, 2, C, mutable, aligned>)", 9)] * 30,
        python=30,
    ),
    "": of(*[(SGEMM, 200), ("diffuse(float *)", 9), ("diffuse(float *)", 9)] * 9, python=30),
}
"""By framework a step that launches slowly, with what its kernels are called."""
WORDS = {
    "torch": ("torch", "pin_memory", "fused=True", "DataLoader"),
    "jax": ("jax", "XLA"),
    "cupy": ("cupy", "CUPY"),
    "numba": ("@cuda.jit", "copy_to_host"),
}


@pytest.mark.parametrize("framework", PROGRAMS)
def test_a_program_is_told_what_its_framework_has(framework: str) -> None:
    found = named(recorded(PROGRAMS[framework])).values()
    assert found
    foreign = [word for other, words in WORDS.items() if other != framework for word in words]
    for item in found:
        assert item.actions
        text = " ".join(item.actions)
        assert not [word for word in foreign if word in text]
        others = [name for name in item.switches if name.startswith(("jax", "xla"))]
        assert item.switches == () or framework in {"torch", "jax"}
        assert bool(others) == (framework == "jax") or not item.switches


def test_kernels_that_a_finding_is_about_are_not_busy_beside_it() -> None:
    """That they are busy has no figure of its own, which would read as the most that is left."""
    found = named(recorded(STEPS["tf32_unused"][0]))
    assert found["tf32_unused"].range[1] > 1.3
    assert "slow_kernel" not in found
    busy = named(recorded(of(("diffuse(float *)", 900))))["slow_kernel"]
    assert busy.range[1] > 1.2
    assert busy.confidence != "high"


def test_padding_comes_before_chains_that_take_less() -> None:
    """Though a compiler, which fuses chains, pads as well."""
    step = of(*[(UNALIGNED, 800), (ADD, 60), (GELU, 60), (NORM, 60)] * 2)
    found = named(recorded(step))
    padding, chains = found["unaligned_products"], found["unfused_kernels"]
    assert padding.rank < chains.rank
    assert chains.speedup < 1.3
    assert chains.range[1] > padding.speedup


def test_a_group_has_the_finding_that_is_about_it() -> None:
    """Not the one before it in the plan, which pads its products as well."""
    step = of(*[(UNALIGNED, 150), *[(ADD, 60), (GELU, 60), (NORM, 60)] * 2] * 2)
    found = named(recorded(step))
    assert found["unfused_kernels"].rank < found["unaligned_products"].rank
    groups = {group.name: group for group in grouped(step).groups}
    assert groups["GEMM, BF16"].finding == "unaligned_products"
    assert groups["norm"].finding == "unfused_kernels"


def test_what_fusing_saves_is_explained_by_kernels_and_their_launches() -> None:
    step = of(*[(BF16, 5), (ADD, 3), (GELU, 3), (NORM, 3)] * 9, python=20)
    item = named(recorded(step))["unfused_kernels"]
    shares = {each.quantity: each.value for each in item.evidence}
    assert shares["chained_share"] < 1 - 1 / item.speedup
    both = shares["chained_share"] + shares["chained_launch_share"]
    assert 1 - 1 / item.speedup < both
    gained = step_time(step) / step_time(
        of(*[(BF16, 5), ("triton_poi_fused_add", 3)] * 9, python=20)
    )
    assert item.range[0] <= gained <= item.range[1] < 2.5 * gained


def test_a_reduction_ends_a_chain() -> None:
    total = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(int)"
    apart = named(recorded(of(*[(ADD, 20), (total, 20)] * 8, python=30)))["unfused_kernels"]
    chained = named(recorded(of(*[(ADD, 20), (GELU, 20)] * 8, python=30)))["unfused_kernels"]
    assert apart.range[1] < chained.speedup


def emptied(host: Host, _: int) -> None:
    for _ in range(4):
        host.call("cudaMalloc", 150 * US)
        host.launch(BF16, 280 * US)
    host.launch(ADD, 80 * US)
    host.synchronize("cudaDeviceSynchronize")
    for _ in range(4):
        host.call("cudaFree", 90 * US)


def test_a_cache_that_is_emptied_in_each_step_is_named() -> None:
    item = named(recorded(emptied))["emptied_cache"]
    assert "empty_cache()" in item.title
    unchanged, fixed = step_time(emptied), step_time(of(*[(BF16, 280)] * 4, (ADD, 80)))
    assert item.rank == 1
    assert item.range[0] <= unchanged / fixed <= item.range[1] * 1.03


def test_a_user_who_frees_has_no_cache_of_torch() -> None:
    def step(host: Host, _: int) -> None:
        host.call("cudaMalloc", 150 * US)
        host.launch("diffuse(float *)", 300 * US)
        host.synchronize("cudaDeviceSynchronize")
        host.call("cudaFree", 90 * US)
        host.call("cudaFree", 90 * US)

    assert {"allocation"} == {"allocation", "emptied_cache"} & set(named(recorded(step)))


def test_half_precision_halves_what_a_compiler_made_of_passes() -> None:
    before = of((TF32, 500), ("loop_add_fusion", 300), ("input_reduce_fusion", 200))
    after = of((BF16, 250), ("loop_add_fusion", 150), ("input_reduce_fusion", 100))
    gained = step_time(before) / step_time(after)
    item = named(recorded(before))["half_precision_unused"]
    assert item.range[0] <= gained <= item.range[1] * 1.03


def test_atomics_take_as_long_in_half_precision() -> None:
    item = named(recorded(of((TF32, 500), (SCATTER, 500))))["half_precision_unused"]
    assert item.range[1] <= 2  # were the products to take no time


@pytest.mark.parametrize(
    "kernels",
    [
        pytest.param([(INDEX, 8), (TIMES, 4000), (SCATTER, 4000)], id="factors of experts"),
        pytest.param([(INDEX, 1), (TIMES, 8), (SCATTER, 8)], id="factors of few rows"),
        pytest.param([(GATHER, 4000), (BF16, 132), (TIMES, 4000), (SCATTER, 4000)], id="experts"),
        pytest.param([(GATHER, 4000), (NORM, 4000), (SCATTER, 4000)], id="embedding"),
        pytest.param([(TIMES, 4000), (SCATTER, 4000), (GATHER, 4000)], id="scattered before"),
    ],
)
def test_gathers_that_no_scatter_adds_up_are_no_messages(kernels: list[tuple[str, int]]) -> None:
    def step(host: Host, _: int) -> None:
        host.launch(BF16, 100 * US)
        for name, blocks in kernels:
            host.launch(name, 200 * US, grid=(blocks, 1, 1))

    assert "materialized_messages" not in named(recorded(step))


def test_the_softmax_of_a_loss_is_no_attention() -> None:
    assert "unfused_attention" not in named(recorded(of((BF16, 100), (LOSS, 200), (BF16, 100))))


def test_kernels_of_a_user_are_no_chain() -> None:
    assert "unfused_kernels" not in named(recorded(of(*[("scale_add(float *)", 100)] * 8)))


def test_a_library_on_the_right_cores_has_no_precision_to_gain() -> None:
    assert not {"tf32_unused", "half_precision_unused"} & set(named(recorded(of((BF16, 900)))))


def test_every_finding_of_a_step_says_what_measures_it() -> None:
    """A switch of `profkit try` of its framework, or that there is none."""
    rules = [rule for rule in shipped_rules() if rule.about == "application"]
    for rule in rules:
        for framework in ("torch", "jax", "cupy"):
            values = {"torch": 0.0, "jax": 0.0, "cupy": 0.0, "numba": 0.0, framework: 1.0}
            told = rule.actions_on((0, 0), values)[-1]
            assert told.startswith("Measure it: profkit try") == bool(rule.switches_in(values))
            assert told == NO_SWITCH or rule.switches_in(values)


@pytest.mark.parametrize("rule", ["launch_bound", "pageable_copies", "small_products"])
def test_evidence_has_a_share_of_the_step(rule: str) -> None:
    (known,) = [each for each in shipped_rules() if each.name == rule]
    assert known.evidence[0].endswith("_share")


def test_the_share_of_launching_is_that_of_the_host() -> None:
    def step(host: Host, _: int) -> None:
        host.compute(2000 * US)  # host work
        host.copy(100 * US, 1 << 20)
        for _ in range(50):
            host.compute(16 * US)
            host.launch(GELU, 5 * US)

    events = recorded(step)
    values = quantities(events, steady_steps(events), host=1.0)
    whole = values["step_time"]
    assert values["launch_share"] == pytest.approx(50 * 20e-6 / whole, rel=0.05)
    assert values["pageable_copy_share"] == pytest.approx(100e-6 / whole, rel=0.05)


def test_products_that_run_at_once_take_their_time_once() -> None:
    def step(host: Host, _: int) -> None:
        for stream in (7, 8, 9):
            host.launch(TF32, 300 * US, stream)
        host.launch(SGEMM, 600 * US)
        host.synchronize()

    events = recorded(step)
    values = quantities(events, steady_steps(events))
    assert values["step_time"] == pytest.approx(900e-6, rel=0.05)
    assert values["tf32_product_share"] == pytest.approx(1 / 3, rel=0.05)
    assert values["fp32_product_share"] == pytest.approx(2 / 3, rel=0.05)


def grouped(step: Step) -> Application:
    return read_application(recorded(step))


def test_groups_have_the_finding_that_takes_most_of_their_time() -> None:
    groups = {group.name: group for group in grouped(STEPS["unfused_kernels"][0]).groups}
    assert groups["elementwise"].finding == groups["norm"].finding == "unfused_kernels"
    assert "tensor cores" in groups["GEMM, BF16"].statement
    assert sum(group.share for group in groups.values()) == pytest.approx(1, abs=0.05)


def test_what_no_name_explains_is_named() -> None:
    application = grouped(of((BF16, 200), (GELU, 300), ("diffuse(float const *)", 500)))
    assert explained_share(application.groups) == pytest.approx(0.3)
    unknown = [group.name for group in application.groups if not group.is_explained]
    assert unknown == ["other", "GEMM, BF16"]  # a name doesn't tell how near to the roof it is


def test_kernels_of_graphs_are_a_group_that_no_name_explains() -> None:
    def step(host: Host, _: int) -> None:
        host.launch(GELU, 300 * US)
        host.launch_graph(5, 500 * US)
        host.copy(200 * US, 8 << 20, source="pinned")
        host.synchronize()

    application = grouped(step)
    assert explained_share(application.groups) == pytest.approx(3 / 8, rel=0.01)
    parts = application.processes[0].parts
    assert explained_of_gpu(application.groups, parts, ()) == pytest.approx(0.5, rel=0.01)
    (graphs,) = [group for group in application.groups if group.name == "CUDA graph"]
    assert graphs.launches == 1
    assert graphs.share == pytest.approx(0.5, rel=0.02)
    assert "--cuda-graph-trace=node" in graphs.text


def test_a_change_of_few_kernels_of_a_group_is_not_the_limit_of_the_group() -> None:
    """Some chained passes among long ones that nothing stands beside."""
    lone = [("diffuse(float const *)", 20), (GELU, 200)] * 6
    chained = [("diffuse(float const *)", 20), *[(GELU, 60)] * 6]
    item = named(recorded(of(*lone, *chained)))["unfused_kernels"]
    assert item.range[1] > 1.1
    groups = {group.name: group for group in grouped(of(*lone, *chained)).groups}
    assert (groups["elementwise"].finding, groups["elementwise"].limited) == ("", True)


@pytest.mark.parametrize(
    ("chained", "limited"), [(2, True), (60, False)], ids=["mostly alone", "mostly in chains"]
)
def test_passes_in_chains_are_not_called_single(chained: int, limited: bool) -> None:
    """Chains too short to be a finding's, beside a long product."""
    step = of((SGEMM, 40_000), *[("diffuse(float const *)", 20), (GELU, 20)] * 20,
              *[(SGEMM, 20), (GELU, 20), (ADD, 20)] * chained)  # fmt: skip
    groups = {group.name: group for group in grouped(step).groups}
    known = groups["elementwise"]
    assert known.limited == limited
    assert ("bandwidth is the limit" in known.text) == limited


CONV = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x64x8"
DEPTHWISE = "void wgrad2d_grouped_direct_kernel<false, true, float, float>(T4 *)"


def test_tf32_changes_no_convolution_where_the_library_may_use_it() -> None:
    def saved(*kernels: tuple[str, int]) -> float:
        events = recorded(of(*kernels))
        return quantities(events, steady_steps(events))["saved_by_tf32"]

    assert saved((CONV, 900), (NORM, 100)) > 0.5
    assert saved((CONV, 900), (NORM, 100), (TOGETHER, 10)) == 0
    assert saved((DEPTHWISE, 900), (NORM, 100)) == 0


def test_what_stands_after_an_optimizer_is_not_its_update() -> None:
    own = [(LERP, 30), (ADDCDIV, 30)] * 20
    for others in ([], [(GELU, 30), (ADD, 40)] * 20):
        events = recorded(of((SGEMM, 900), *own, *others))
        assert quantities(events, steady_steps(events))["update_kernels"] == len(own)


def test_products_behind_a_busy_host_are_told_their_precision() -> None:
    def step(host: Host, _: int) -> None:
        for _ in range(6):
            host.compute(400 * US)
            host.launch(TF32, 100 * US)

    application = grouped(step)
    assert "product_precision" not in {item.rule.category for item in application.findings}
    (group,) = application.groups
    assert group.finding == "half_precision_unused"
    assert "the step gains nothing by it alone" in group.text


def test_a_group_names_the_modules_that_launched_it() -> None:
    def step(host: Host, _: int) -> None:
        with host.range("model"):
            host.compute(US)
            with host.range("layers.0.mlp"):
                host.launch(BF16, 300 * US)
        with host.range("aten::gelu, op_id = 12"):
            host.launch(GELU, 100 * US)

    groups = {group.name: group for group in grouped(step).groups}
    assert [each.name for each in groups["GEMM, BF16"].callers] == ["layers.0.mlp"]
    assert [each.name for each in groups["elementwise"].callers] == ["aten::gelu"]


def small_grids(host: Host, _: int) -> None:
    for _ in range(4):
        host.launch("diffuse(float const *)", 200 * US, grid=(20, 1, 1))


@pytest.mark.parametrize(
    ("step", "words"), [(small_grids, "fewer blocks than half of the 132 SMs")]
)
def test_launches_say_what_names_do_not(step: Callable[[Host, int], None], words: str) -> None:
    (group,) = grouped(step).groups
    assert words in group.statement


@pytest.mark.parametrize("name", ["volta_dgemm_64x64_nn", "cutlass_80_tensorop_d884gemm_128x64"])
def test_products_in_fp64_are_not_called_fp32(name: str) -> None:
    groups = {group.name: group for group in grouped(of((name, 400), (DOUBLE, 100))).groups}
    assert groups["GEMM, FP64"].text == "FP64, whose rate is that of FP32 at best"
