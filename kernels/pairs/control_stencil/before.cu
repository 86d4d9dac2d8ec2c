// Smooths each row of an image by a 3-point stencil, the edges repeated; a thread has four columns,
// a warp 32 neighbours of each. Nothing to mend: the neighbours come from L1, DRAM is the roof.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kEach = 4;  // columns of a thread

extern "C" __global__ void __launch_bounds__(kThreads)
    smooth(const float* __restrict__ x, float* __restrict__ out, int columns) {
  const long long offset = static_cast<long long>(blockIdx.y) * columns;
  const float* source = x + offset;
  const int first = blockIdx.x * kThreads * kEach + threadIdx.x;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int i = first + j * kThreads;
    if (i < columns) {
      out[offset + i] = 0.25f * source[max(i - 1, 0)] + 0.5f * source[i] +
                        0.25f * source[min(i + 1, columns - 1)];
    }
  }
}
