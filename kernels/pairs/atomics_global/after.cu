// Sums the 256 columns of a matrix, a block for a run of rows; out starts at zero. A thread sums
// its column over the run in a register, and adds once to the sum in global memory.
//
// Architectures: sm_80, sm_90a.

constexpr int kColumns = 256;

extern "C" __global__ void __launch_bounds__(kColumns)
    column_sums(const float* __restrict__ x, float* __restrict__ out, int rows, int part) {
  const int begin = blockIdx.x * part;
  const int end = min(rows, begin + part);
  float sum = 0.0f;
#pragma unroll 8
  for (int row = begin; row < end; ++row) {
    sum += x[row * kColumns + threadIdx.x];
  }
  atomicAdd(out + threadIdx.x, sum);
}
