// The norm of each row of a matrix of gradients, a block for each row. Threads' sums are added by
// shuffles within warps, and then once over the warps, with a single barrier.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr int kWarps = kThreads / kLanes;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

// `length` is a number of float4.
extern "C" __global__ void __launch_bounds__(kThreads)
    row_norms(const float4* __restrict__ gradients, float* __restrict__ out, int length) {
  __shared__ float sums[kWarps];
  const float4* row = gradients + static_cast<long long>(blockIdx.x) * length;
  float sum = 0.0f;
#pragma unroll 4
  for (int i = threadIdx.x; i < length; i += kThreads) {
    const float4 g = row[i];
    sum += g.x * g.x + g.y * g.y + g.z * g.z + g.w * g.w;
  }
  sum = warp_sum(sum);
  if (threadIdx.x % kLanes == 0) sums[threadIdx.x / kLanes] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) total += sums[warp];
    out[blockIdx.x] = sqrtf(total);
  }
}
