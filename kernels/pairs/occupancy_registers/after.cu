// Walks through a table of rows of 32 entries, a warp for each walk: the first entry of a row names
// the next row. Out is the variance of each lane's entries along the walk. It is taken in one pass,
// from running sums, so that few registers are needed and every warp slot of an SM can be filled.
//
// Architectures: sm_80, sm_90a.

constexpr int kSteps = 96;
constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    walk_variance(const int* __restrict__ table, const int* __restrict__ starts,
                  float* __restrict__ out, float scale) {
  const int walk = (blockIdx.x * kThreads + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;

  float sum = 0.0f;
  float squares = 0.0f;
  int row = starts[walk];
#pragma unroll 4
  for (int step = 0; step < kSteps; ++step) {
    const int entry = table[row * 32 + lane];
    const float value = static_cast<float>(entry) * scale - 0.5f;
    sum += value;
    squares += value * value;
    row = __shfl_sync(0xffffffffu, entry, 0);
  }

  const float mean = sum * (1.0f / kSteps);
  out[walk * 32 + lane] = squares * (1.0f / kSteps) - mean * mean;
}
