// Sums windows of x, whose lengths follow a power law: from `longest` for a draw of zero down to
// longest / draws. What is wrong: each window is one warp's, whatever its length, so that a few
// warps are at work long after the others.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;

extern "C" __global__ void __launch_bounds__(kThreads)
    window_sums(const float* __restrict__ x, const int* __restrict__ starts,
                const int* __restrict__ draws, float* __restrict__ out, int windows, int longest) {
  const int lane = threadIdx.x % 32;
  const int window = blockIdx.x * kWarps + threadIdx.x / 32;
  if (window >= windows) return;

  const int length = longest / (1 + draws[window]);
  const float* source = x + starts[window];
  float sum = 0.0f;
#pragma unroll 4
  for (int i = lane; i < length; i += 32) sum += source[i];
#pragma unroll
  for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
  if (lane == 0) out[window] = sum;
}
