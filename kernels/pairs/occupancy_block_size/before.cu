// Sum of the squares of each row of 32 columns, a warp for each row. What is wrong: a block is one
// warp, and an SM holds no more than 32 blocks: half of its warp slots stay empty, in a kernel that
// waits for memory.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 32;

extern "C" __global__ void __launch_bounds__(kThreads)
    row_squares(const float* __restrict__ x, float* __restrict__ out, int rows) {
  constexpr int kWarps = kThreads / 32;
  const int lane = threadIdx.x % 32;
  const int first = blockIdx.x * kWarps + threadIdx.x / 32;

#pragma unroll 1
  for (int row = first; row < rows; row += gridDim.x * kWarps) {
    const float value = x[row * 32 + lane];
    float sum = value * value;
#pragma unroll
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (lane == 0) out[row] = sum;
  }
}
