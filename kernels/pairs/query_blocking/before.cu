// Estimates a density: for each centre, the sum of max(0, 1 - |point - centre|) over each chunk of
// the points. What is wrong: a block has one centre, so that all points are read from L2 once for
// each centre, and there is little to do for each.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

// Valid in thread 0.
__device__ __forceinline__ float block_sum(float value) {
  __shared__ float of_warp[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(~0u, value, offset);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < kThreads / 32; ++warp) sum += of_warp[warp];
  return sum;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    density(const float* __restrict__ points, const float* __restrict__ centres,
            float* __restrict__ out, int chunk_length) {
  const float* chunk = points + static_cast<long long>(blockIdx.x) * chunk_length;
  const float centre = centres[blockIdx.y];
  float sum = 0.0f;
#pragma unroll 4
  for (int i = threadIdx.x; i < chunk_length; i += kThreads) {
    sum += fmaxf(1.0f - fabsf(chunk[i] - centre), 0.0f);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}
