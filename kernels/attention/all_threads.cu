// Attention as in serial_kv.cu, with every thread at work: four neighbouring lanes share a query
// row, each holds a quarter of its dimensions, and shuffles add up their parts of a score.
//
// Tensors are contiguous (batch, heads, length, DIM). Grid: batch * heads * ceil(length / 64).
// Architectures: sm_80, sm_90a.
// Defines: DIM, the head dimension, 64 or 128; BF16 for bfloat16 in place of float16.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef BF16
using element = __nv_bfloat16;
#else
using element = __half;
#endif

constexpr int kThreads = 256;
constexpr int kRows = 64;  // of a tile of Q, K or V
constexpr int kLanes = kThreads / kRows;
constexpr int kShare = DIM / kLanes;
constexpr float kLowest = -3.4e38f;
static_assert(DIM == 64 || DIM == 128, "a row is split among four lanes");

__device__ void load_tile(element* tile, const element* head, int first, int length) {
  const int elements = min(kRows, length - first) * DIM;
  const element* source = head + static_cast<long long>(first) * DIM;
  for (int i = threadIdx.x; i < elements; i += kThreads) tile[i] = source[i];
}

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    all_threads(const element* __restrict__ q, const element* __restrict__ k,
                const element* __restrict__ v, element* __restrict__ out, int length, float scale,
                bool causal) {
  __shared__ element k_tile[kRows * DIM];
  __shared__ element v_tile[kRows * DIM];

  const int tiles = (length + kRows - 1) / kRows;
  const long long offset = static_cast<long long>(blockIdx.x / tiles) * length * DIM;
  const int first_row = blockIdx.x % tiles * kRows;
  const int row = first_row + threadIdx.x / kLanes;
  const int first_dim = threadIdx.x % kLanes * kShare;
  const long long mine = offset + static_cast<long long>(row) * DIM + first_dim;

  float query[kShare];
#pragma unroll
  for (int d = 0; d < kShare; ++d) {
    query[d] = row < length ? static_cast<float>(q[mine + d]) * scale : 0.0f;
  }

  float sum[kShare] = {};  // of the values, weighted by exp(score - largest)
  float largest = kLowest;
  float weights = 0.0f;

  const int keys = causal ? min(length, first_row + kRows) : length;
  for (int first_key = 0; first_key < keys; first_key += kRows) {
    __syncthreads();  // the tiles of the step before are read to the end
    load_tile(k_tile, k + offset, first_key, length);
    load_tile(v_tile, v + offset, first_key, length);
    __syncthreads();

    const int count = min(kRows, keys - first_key);
    for (int key = 0; key < count; ++key) {
      float score = 0.0f;
#pragma unroll
      for (int d = 0; d < kShare; ++d) {
        score += query[d] * static_cast<float>(k_tile[key * DIM + first_dim + d]);
      }
#pragma unroll
      for (int lane = 1; lane < kLanes; lane *= 2) {
        score += __shfl_xor_sync(0xffffffff, score, lane);
      }
      // A key is hidden by its score: all lanes of a warp must reach the shuffles.
      if (causal && first_key + key > row) score = kLowest;

      if (score > largest) {  // rescale what was summed against a smaller maximum
        const float shrink = expf(largest - score);
        weights *= shrink;
#pragma unroll
        for (int d = 0; d < kShare; ++d) sum[d] *= shrink;
        largest = score;
      }

      const float weight = expf(score - largest);
      weights += weight;
#pragma unroll
      for (int d = 0; d < kShare; ++d) {
        sum[d] += weight * static_cast<float>(v_tile[key * DIM + first_dim + d]);
      }
    }
  }

  if (row >= length) return;
#pragma unroll
  for (int d = 0; d < kShare; ++d) out[mine + d] = static_cast<element>(sum[d] / weights);
}
