// Smooths the rows of a displacement field with 17 binomial weights. What is wrong: every thread
// clamps the column of every tap to the row, though only the first and last block of a row have
// taps outside of it.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kRadius = 8;

constexpr float kScale = 1.0f / 65536.0f;
__device__ constexpr float kWeights[2 * kRadius + 1] = {
    1 * kScale,    16 * kScale,    120 * kScale,  560 * kScale,  1820 * kScale, 4368 * kScale,
    8008 * kScale, 11440 * kScale, 12870 * kScale, 11440 * kScale, 8008 * kScale, 4368 * kScale,
    1820 * kScale, 560 * kScale,   120 * kScale,  16 * kScale,   1 * kScale};

extern "C" __global__ void __launch_bounds__(kThreads)
    smooth_rows(const float* __restrict__ field, float* __restrict__ out, int columns) {
  const int x = blockIdx.x * kThreads + threadIdx.x;
  const float* row = field + blockIdx.y * columns;
  if (x >= columns) return;
  float sum = 0.0f;
#pragma unroll
  for (int k = -kRadius; k <= kRadius; ++k) {
    const int column = min(max(x + k, 0), columns - 1);
    sum += kWeights[k + kRadius] * row[column];
  }
  out[blockIdx.y * columns + x] = sum;
}
