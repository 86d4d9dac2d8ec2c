// The squared error of rounding each value to a grid, summed over 64 grids.
// Adding a large constant and taking it off again rounds at the rate of additions.
// Architectures: sm_80, sm_90a.

constexpr int kGrids = 64;
constexpr int kThreads = 256;
constexpr float kRounder = 0x1.8p23f;  // floats of this size are integers

extern "C" __global__ void __launch_bounds__(kThreads)
    rounding_errors(const float* __restrict__ values, float* __restrict__ out, int count) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const float value = values[i];
  float sum = 0.0f;
#pragma unroll
  for (int grid = 0; grid < kGrids; ++grid) {
    const float scaled = value * (1.5f + 0.25f * grid);
    const float rounded = (scaled + kRounder) - kRounder;
    const float error = scaled - rounded;
    sum += error * error;
  }
  out[i] = sum;
}
