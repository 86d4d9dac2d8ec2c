"""Library kernels: recognized by name, with actions for their callers."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.rules.checklist import checklist
from profkit.rules.libraries import caller_actions, library_of
from profkit.rules.rule_file import shipped_rules
from profkit.rules.samples import CATEGORIES
from tests.conftest import h200
from tests.rules.test_engine import own, report


@pytest.mark.parametrize(
    ("kernel", "library"),
    [
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3__5x_cublas", "cuBLAS"),
        ("ampere_sgemm_128x64_nn", "cuBLAS"),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn", "cuBLAS"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", "cuBLAS"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_i161616gemm_s8>(T1::Params)", "cuBLAS"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_kernel0_0", "cuDNN"),
        ("void at::native::vectorized_elementwise_kernel<(int)4>(int, T2, T3)", "PyTorch"),
        ("void <unnamed>::softmax_warp_forward<float, float>(T2 *, const T1 *)", "PyTorch"),
        ("void (anonymous namespace)::softmax_warp_forward<float>(float *)", "PyTorch"),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)64>>()", "PyTorch"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", "NCCL"),
        ("triton_poi_fused_add_mul_0", "torch.compile"),
        ("void cub::DeviceReduceKernel<Policy>(int *)", "CUB or Thrust"),
        # kernels that their users wrote, some with a library's templates
        ("hopper_gemm_kernel(float *)", None),
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int>>(T1)", None),
        ("void cutlass::Kernel<MyGemm>(MyGemm::Params)", None),
        ("flash_attn_v2_kernel(float *)", None),
        ("ampere_gemm(float *)", None),
        ("wmma_gemm(__half *, __half *, float *, int, int, int)", None),
    ],
)
def test_libraries_are_recognized_by_name(kernel: str, library: str | None) -> None:
    assert library_of(kernel) == library


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_has_actions_for_the_caller(category: str) -> None:
    for library in ("cuBLAS", "NCCL"):
        assert caller_actions(library, category)


def test_findings_on_library_kernels_address_the_caller() -> None:
    found = checklist(h200("sdpa_s512_math").summary, shipped_rules())
    named = {item.library for item in found.findings}
    assert {"cuBLAS", "PyTorch"} <= named
    for item in found.findings:
        if item.library:
            assert item.actions == caller_actions(item.library, item.rule.category)
        else:
            assert set(item.actions) <= {action.text for action in item.rule.actions}


def test_known_kernels_of_users_are_none_of_a_library() -> None:
    assert {library_of(launch.name) for launch in h200("known").summary.launches} == {None}


def test_a_user_s_own_rule_keeps_its_actions(tmp_path: Path) -> None:
    rule = own(tmp_path, when="stall_wait > 1")
    (item,) = checklist(
        report([{"duration": 1e-3, "stall_wait": 2.0}], names=["ampere_sgemm_128x64_nn"]), [rule]
    ).items
    assert (item.library, item.actions) == (None, ("a",))
