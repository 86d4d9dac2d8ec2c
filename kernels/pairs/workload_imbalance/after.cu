// Sums windows of x, whose lengths follow a power law: from `longest` for a draw of zero down to
// longest / draws. A warp takes a window if it is short; the long ones among a block's windows are
// shared by all of its warps.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;
constexpr int kShort = 1024;

__device__ __forceinline__ float warp_sum(float sum) {
#pragma unroll
  for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
  return sum;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    window_sums(const float* __restrict__ x, const int* __restrict__ starts,
                const int* __restrict__ draws, float* __restrict__ out, int windows, int longest) {
  __shared__ int block_starts[kWarps], block_lengths[kWarps];
  __shared__ float parts[kWarps];

  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int window = blockIdx.x * kWarps + warp;

  if (window < windows) {
    const int length = longest / (1 + draws[window]);
    const int start = starts[window];
    if (lane == 0) {
      block_lengths[warp] = length;
      block_starts[warp] = start;
    }
    if (length <= kShort) {
      const float* source = x + start;
      float sum = 0.0f;
#pragma unroll 4
      for (int i = lane; i < length; i += 32) sum += source[i];
      sum = warp_sum(sum);
      if (lane == 0) out[window] = sum;
    }
  }
  __syncthreads();

  const int count = min(kWarps, windows - static_cast<int>(blockIdx.x) * kWarps);
  for (int shared = 0; shared < count; ++shared) {
    const int length = block_lengths[shared];
    if (length <= kShort) continue;
    const float* source = x + block_starts[shared];
    float sum = 0.0f;
#pragma unroll 4
    for (int i = threadIdx.x; i < length; i += kThreads) sum += source[i];
    sum = warp_sum(sum);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      sum = warp_sum(parts[lane]);
      if (lane == 0) out[blockIdx.x * kWarps + shared] = sum;
    }
    __syncthreads();  // before the next window's parts take their place
  }
}
