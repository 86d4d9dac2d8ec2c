// Walks through a table of rows of 32 entries, a warp for each walk: the first entry of a row names
// the next row. Out is the variance of each lane's entries along the walk. What is wrong: the two
// passes over a walk's entries keep them all in registers, so that few warps fit on an SM, and a
// walk has only one load in flight.
//
// Architectures: sm_80, sm_90a.

constexpr int kSteps = 96;
constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    walk_variance(const int* __restrict__ table, const int* __restrict__ starts,
                  float* __restrict__ out, float scale) {
  const int walk = (blockIdx.x * kThreads + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;

  float entries[kSteps];
  int row = starts[walk];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int entry = table[row * 32 + lane];
    entries[step] = static_cast<float>(entry) * scale - 0.5f;
    row = __shfl_sync(0xffffffffu, entry, 0);
  }

  float sum = 0.0f;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) sum += entries[step];
  const float mean = sum * (1.0f / kSteps);
  float squares = 0.0f;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    squares += (entries[step] - mean) * (entries[step] - mean);
  }
  out[walk * 32 + lane] = squares * (1.0f / kSteps);
}
