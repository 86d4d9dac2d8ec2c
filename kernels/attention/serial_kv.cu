// Attention in the plain FlashAttention-1 manner: a block takes 64 query rows of one head and walks
// over K and V tile by tile, keeping a running softmax. Correct, and slow on purpose: the walk is
// serial, one thread does a whole row, and only 64 of the 256 threads compute.
//
// Tensors are contiguous (batch, heads, length, DIM). Grid: batch * heads * ceil(length / 64).
// Architectures: sm_80, sm_90a.
// Defines: DIM, the head dimension, at most 128; BF16 for bfloat16 in place of float16.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef BF16
using element = __nv_bfloat16;
#else
using element = __half;
#endif

constexpr int kThreads = 256;
constexpr int kRows = 64;  // of a tile of Q, K or V
constexpr float kLowest = -3.4e38f;
static_assert(DIM >= 1 && DIM <= 128, "three tiles must fit into 48 KiB of shared memory");

__device__ void load_tile(element* tile, const element* head, int first, int length) {
  const int elements = min(kRows, length - first) * DIM;
  const element* source = head + static_cast<long long>(first) * DIM;
  for (int i = threadIdx.x; i < elements; i += kThreads) tile[i] = source[i];
}

extern "C" __global__ void __launch_bounds__(kThreads)
    serial_kv(const element* __restrict__ q, const element* __restrict__ k,
              const element* __restrict__ v, element* __restrict__ out, int length, float scale,
              bool causal) {
  __shared__ element q_tile[kRows * DIM];
  __shared__ element k_tile[kRows * DIM];
  __shared__ element v_tile[kRows * DIM];

  const int tiles = (length + kRows - 1) / kRows;
  const long long offset = static_cast<long long>(blockIdx.x / tiles) * length * DIM;
  const int first_row = blockIdx.x % tiles * kRows;
  const int row = first_row + threadIdx.x;
  const bool computes = threadIdx.x < kRows && row < length;

  load_tile(q_tile, q + offset, first_row, length);

  float sum[DIM];  // of the values, weighted by exp(score - largest)
#pragma unroll
  for (int d = 0; d < DIM; ++d) sum[d] = 0.0f;
  float largest = kLowest;
  float weights = 0.0f;

  // No row of this block sees a key past `keys`.
  const int keys = causal ? min(length, first_row + kRows) : length;
  for (int first_key = 0; first_key < keys; first_key += kRows) {
    __syncthreads();  // the tiles of the step before are read to the end
    load_tile(k_tile, k + offset, first_key, length);
    load_tile(v_tile, v + offset, first_key, length);
    __syncthreads();
    if (!computes) continue;

    const int seen = min(causal ? row + 1 : length, first_key + kRows) - first_key;
    for (int key = 0; key < seen; ++key) {
      float score = 0.0f;
#pragma unroll
      for (int d = 0; d < DIM; ++d) {
        score += static_cast<float>(q_tile[threadIdx.x * DIM + d]) *
                 static_cast<float>(k_tile[key * DIM + d]);
      }
      score *= scale;

      if (score > largest) {  // rescale what was summed against a smaller maximum
        const float shrink = expf(largest - score);
        weights *= shrink;
#pragma unroll
        for (int d = 0; d < DIM; ++d) sum[d] *= shrink;
        largest = score;
      }

      const float weight = expf(score - largest);
      weights += weight;
#pragma unroll
      for (int d = 0; d < DIM; ++d) {
        sum[d] += weight * static_cast<float>(v_tile[key * DIM + d]);
      }
    }
  }

  if (!computes) return;
  element* target = out + offset + static_cast<long long>(row) * DIM;
#pragma unroll
  for (int d = 0; d < DIM; ++d) target[d] = static_cast<element>(sum[d] / weights);
}
