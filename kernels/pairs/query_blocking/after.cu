// Estimates a density: for each centre, the sum of max(0, 1 - |point - centre|) over each chunk of
// the points. A block has four centres, so that a point once read serves four of them.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kCentres = 4;  // of a block

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
  const int first = blockIdx.y * kCentres;
  float centre[kCentres], sum[kCentres];
#pragma unroll
  for (int k = 0; k < kCentres; ++k) {
    centre[k] = centres[first + k];
    sum[k] = 0.0f;
  }
#pragma unroll 4
  for (int i = threadIdx.x; i < chunk_length; i += kThreads) {
    const float point = chunk[i];
#pragma unroll
    for (int k = 0; k < kCentres; ++k) sum[k] += fmaxf(1.0f - fabsf(point - centre[k]), 0.0f);
  }
#pragma unroll
  for (int k = 0; k < kCentres; ++k) {
    const float total = block_sum(sum[k]);
    if (threadIdx.x == 0) out[(first + k) * gridDim.x + blockIdx.x] = total;
  }
}
