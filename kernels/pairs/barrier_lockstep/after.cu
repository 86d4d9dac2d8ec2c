// Sums the rows of windows of x, 32 columns wide, a warp for each window, and smooths the result
// over neighbouring columns through shared memory. Only the warp that wrote the sums waits for
// them, so that each goes on at its own pace.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    smooth_sums(const float* __restrict__ x, const int* __restrict__ starts,
                const int* __restrict__ draws, float* __restrict__ out, int rounds, int longest) {
  __shared__ float sums[kWarps][32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;

  for (int round = 0; round < rounds; ++round) {
    const int window = (blockIdx.x * rounds + round) * kWarps + warp;
    const int length = longest / (1 + draws[window]);  // a power law
    const float* source = x + starts[window] * 32 + lane;
    float sum = 0.0f;
#pragma unroll 4
    for (int row = 0; row < length; ++row) sum += source[row * 32];

    sums[warp][lane] = sum;
    __syncwarp();  // the warp's sums are there
    out[window * 32 + lane] = 0.25f * sums[warp][(lane + 31) % 32] + 0.5f * sum +
                              0.25f * sums[warp][(lane + 1) % 32];
    __syncwarp();  // and read
  }
}
