"""Kernels labeled by their names, as real reports and timelines have them."""

from __future__ import annotations

import time

import pytest

from profkit.application.kernel_changes import converted
from profkit.application.kernel_kinds import collective, kernel_kind, kernel_traits

NATIVE = "void at::native::"
KINDS = {
    "communication": [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)",
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
        "nvshmemi_transfer_quiet_entrypoint",
    ],
    "attention": [
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1",
        "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<...>)",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)64, (int)128>>",
        "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits>",
        "kernel_cutlass_kernel_flash_attncuteflash_fwd_sm90FlashAttentionForwardSm90_object_at__",
        "void flash_attn_v2_kernel<(int)64>(const __nv_bfloat16 *, const __nv_bfloat16 *)",
        "triton_tem_fused_flex_attention_0",
        "void cudnn::fusion::compute_dot_do_o_specialized<(bool)1, (int)128>(const void *)",
    ],
    "GEMM": [
        "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT",
        "ampere_sgemm_128x64_nn",
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_ffma_execute_kernel__5x",
        "void cutlass::Kernel2<cutlass_80_wmma_tensorop_i161616gemm_s8_forwardCompat_128x128>",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>",
        "gemm_fusion_dot_12_0",
        "triton_tem_fused_mm_3",
        "matmul_kernel(const float *, const float *, float *, int)",
        "void tiled_matmul<(unsigned int)32>(const float *, const float *, float *, int)",
        "wmma_gemm(__half *, __half *, float *, int, int, int)",
    ],
    "convolution": [
        "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64",
        "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>",
        "void at::native::im2col_kernel<float>(long, float const*)",
    ],
    "norm": [
        f"{NATIVE}(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)",
        f"{NATIVE}(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float, float>(long)",
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>",
        "triton_per_fused_add_native_layer_norm_4",
        "triton_red_fused__to_copy_mean_mul_rms_norm_2",
        "triton_per_fused__to_copy_add_div_mean_mul_pow_sqrt_sub_view_3",
    ],
    "softmax": [
        "void <unnamed>::softmax_warp_forward<float, float, float, (int)9, (bool)0, (bool)0>(T2 *)",
        f"{NATIVE}(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>(float*)",
        f"{NATIVE}(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float>",
        "triton_per_fused__softmax_1",
        "triton_softmax_5_0",
    ],
    "elementwise": [
        f"{NATIVE}vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>>(int)",
        f"{NATIVE}vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>>(int)",
        f"{NATIVE}elementwise_kernel<(int)128, (int)2, at::native::where_kernel_impl(at::T&)>",
        "triton_poi_fused_add_gelu_3",
        "triton_poi_fused_add_clone_permute_select_backward_8",
        "loop_add_fusion",
        "loop_multiply_fusion_3",
        "wrapped_tanh",
        "silu_kernel(float *, float *, int)",
        "void act_and_mul_kernel<__nv_bfloat16>(__nv_bfloat16*)",
    ],
    "copy": [
        f"{NATIVE}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::T&)>",
        f"{NATIVE}vectorized_elementwise_kernel<(int)8, at::native::float16_copy_kernel_cuda(a)>",
        f"{NATIVE}(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 4, 64, 64>",
        "transpose_padded(const float *, float *, int)",
        "input_concatenate_fusion",
        "void CUTENSOR_NAMESPACE::permutationKernelPLC3<float>(T1)",
        "void nhwcAddPaddingKernel<__nv_bfloat16, float>(int, int)",
    ],
    "pooling": [
        "sm50_xmma_pooling_coalescedC_NHWC_kMAX_3_False_execute_kernel_trt",
        "sm50_xmma_pooling_fw_4d_FP16FP32NHWC_Average_FastDiv_CAlign8_execute_kernel_trt",
        f"{NATIVE}<unnamed>::avg_pool2d_out_cuda_frame_nhwc<c10::BFloat16, float>(int, const T1 *)",
        f"{NATIVE}<unnamed>::max_pool_forward_nchw<float, long>(int, const T1 *)",
        "void cudnn::pooling_fw_4d_kernel<float, float>(T)",
    ],
    "FFT": [
        "void vector_fft_symm_c2r<(unsigned int)65536, EPT<(int)32>>(kernel_arguments_t<T9>)",
        "void regular_fft<(unsigned int)128, (unsigned int)8>(kernel_arguments_t<unsigned int>)",
    ],
    "reduction": [
        f"{NATIVE}reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, SumOps>>(T)",
        "triton_red_fused_sum_7",
        "triton_per_fused_mean_2",
        "input_reduce_fusion_4",
        "triton_per_fused__to_copy_add_div_expand_mul_neg_pow_sub_sum_view_7",
        f"{NATIVE}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>",
    ],
    "optimizer": [
        f"{NATIVE}(anonymous namespace)::multi_tensor_apply_kernel<FusedOptimizerTensorList"
        "Metadata<4>, FusedAdamMathFunctor<float, float, 4>>(T)",
        "triton_for_fused_2",
    ],
    "embedding, gather": [
        f"{NATIVE}(anonymous namespace)::embedding_backward_feature_kernel<float, float, int>",
        f"{NATIVE}(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int>",
        f"{NATIVE}vectorized_gather_kernel<16, long>(char*, char*, long*)",
        "triton_poi_fused_add_embedding_0",
        "void at::native::<unnamed>::compute_grad_weight<float, long>(const T2 *, const T1 *)",
        "input_scatter_fusion",
    ],
    "sort": [
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, long>>",
        f"{NATIVE}sbtopk::gatherTopK<float, unsigned int, 2, false>(T)",
    ],
    "random": [
        f"{NATIVE}(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>",
        "generate_seed_pseudo(curandStateXORWOW *, unsigned long long)",
        "void gen_sequenced<curandStateXORWOW, float2, normal_args_st>(T1 *, T2 *)",
        f"{NATIVE}(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1>",
    ],
    "other": [
        "render(float4 *, int, int, curandStateXORWOW *)",
        "void monte_carlo<float>(curandStateXORWOW *, const float *)",
        "void walk<curandStatePhilox4_32_10, (int)4>(T1 *, int)",
        "attend(flash_attn_params, AdamW *)",
        "kernel(int const*, int*)",
        "delayAndSumFast(const float *)",
        "julia__5_6739(T)",
    ],
}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for kind, names in KINDS.items() for name in names]
)
def test_a_kernel_has_the_kind_of_its_name(name: str, kind: str) -> None:
    assert kernel_kind(name) == kind


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(T)", "all-reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(T)", "reduce-scatter"),
        ("ncclDevKernel_SendRecv(T)", "send/receive"),
        ("void one_shot_all_reduce_kernel<float>(T)", "all-reduce"),
        ("nvshmemi_transfer_quiet_entrypoint", "communication"),
    ],
)
def test_a_collective_is_named(name: str, operation: str) -> None:
    assert collective(name) == operation


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_ffma", "GEMM, FP32"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nt_align1>(T1)", "GEMM, FP32"),
        ("ampere_sgemm_128x64_nn", "GEMM, FP32"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4", "GEMM, TF32"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_16x6>(T1)", "GEMM, TF32"),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_nn", "GEMM, FP16"),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", "GEMM, FP16"),
        ("volta_h884gemm_128x64_ldg8_tn", "GEMM, FP16"),
        ("ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_64x5_tn", "GEMM, BF16"),
        ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "GEMM, BF16"),
        ("nvjet_hsh_128x128_64x6_1x2_h_bz_TNT", "GEMM, FP16"),
        ("nvjet_sm90_sss_128x128_64x6_1x2_h_bz_TNT", "GEMM"),
        ("ampere_dgemm_64x64_nn", "GEMM, FP64"),
        ("gemm_fusion_dot_12_0", "GEMM, compiled"),
        ("void gemv2T_kernel_val<int, int, __nv_bfloat16, float, 128, 16>(T1)", "GEMV, BF16"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw", "convolution, TF32"),
        ("sm90_xmma_dgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc", "convolution, BF16"),
        ("cudnn_infer_ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_t", "convolution, FP32"),
        ("void at::native::conv_depthwise2d_forward_kernel<3, float, int>(T)", "convolution"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", "attention, 16-bit"),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention)", "attention, 3xTF32"),
        ("void wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>(T)", "convolution, FP32"),
        ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3>(T)", "convolution, FP32"),
        ("void cudnn::ops::nchwToNhwcKernel<float, float, float, 0, 1>(T)", "layout conversion"),
        ("void nchwToFoldedNhwcKernel<float, float, float, true, 2>(T)", "layout conversion"),
        ("void foldedNhwcToNchwKernel<float, float, float, true, 0>(T)", "layout conversion"),
        (f"{NATIVE}multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOp<float>>", "optimizer"),
        (
            f"{NATIVE}multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, F>(T)",
            "optimizer, fused",
        ),
        ("triton_poi_fused_add_gelu_3", "elementwise, compiled"),
        ("triton_red_fused_sum_7", "reduction, compiled"),
        ("input_reduce_fusion_4", "reduction, compiled"),
        ("cupy_multiply__float64_float64_float64", "elementwise"),
        ("void cusparse::csrmm_alg2_kernel<float, int>(T)", "sparse"),
        ("void RNN_blockPersist_fp_LSTM<float, float, float, 128>(T)", "recurrent"),
    ],
)
def test_a_kernel_has_the_group_of_what_limits_it(name: str, group: str) -> None:
    assert kernel_traits(name).group == group


@pytest.mark.parametrize(
    ("name", "unaligned"),
    [
        ("cutlass_80_tensorop_s16816gemm_bf16_128x64_64x6_nt_align8", False),
        ("cutlass_80_tensorop_s16816gemm_bf16_128x64_64x6_nt_align2", True),
        ("cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4", False),
        ("cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align1", True),
        ("cutlass_80_simt_sgemm_128x64_8x5_nt_align1", False),
    ],
)
def test_operands_on_tensor_cores_are_unaligned_by_their_name(name: str, unaligned: bool) -> None:
    assert (kernel_traits(name).aligned < 16) == unaligned


def test_what_tf32_changes_is_not_attention_in_fp32() -> None:
    """It took 1.76 ms on an H200 with and without TF32, a matrix product 2.67
    and 0.34 ms: three products of TF32 are its FP32."""
    attention = kernel_traits("fmha_cutlassB_f32_aligned_64x64_k64_sm80(PyTorchMemEffAttention)")
    product = kernel_traits("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nn_align1>")
    rates = {"fp32": 128, "tensor_tf32": 1024, "tensor_bf16": 2048}
    assert converted(attention, "TF32", rates) == 1
    assert converted(product, "TF32", rates) == 1 / 8
    assert converted(attention, "BF16", rates) == pytest.approx(1 / 6)


def test_a_name_of_only_digits_takes_no_minute() -> None:
    began = time.process_time()
    for first in "123":
        kernel_kind(first * 200_000)
    assert time.process_time() - began < 10  # seconds; at once on an idle machine


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("void at::native::vectorized_gather_kernel<(int)16, long>(char *, char *)", "gather"),
        ("void indexSelectLargeIndex<float, long, (int)2, (int)2, (int)-2>", "gather"),
        ("void indexSelectLargeIndex<float, long, (int)1, (int)1, (int)-2>", ""),
        ("void index_elementwise_kernel<(int)128, (int)4, index_kernel_impl<4>>", "gather"),
        ("void index_elementwise_kernel<(int)128, (int)4, index_put_kernel_impl<4>>", ""),
        (
            "void _scatter_gather_elementwise_kernel<(int)128, (int)8, scatter<ReduceAdd>>",
            "scatter",
        ),
        ("void _scatter_gather_elementwise_kernel<(int)128, (int)8, gather<TensorAssign>>", ""),
        ("void indexFuncLargeIndex<float, long, (int)2, (int)-2, (bool)1, ReduceAdd>", "scatter"),
        ("void vectorized_elementwise_kernel<(int)4, AUnaryFunctor<float, MulFunctor<float>>>", ""),
        ("void vectorized_elementwise_kernel<(int)4, BinaryFunctor<float, MulFunctor>>", "product"),
    ],
)
def test_names_say_what_is_done_with_messages(name: str, message: str) -> None:
    assert kernel_traits(name).message == message
