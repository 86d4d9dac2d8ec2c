// Sums the columns of a matrix. The rows are split over the grid's second dimension, so that there
// are blocks for every SM; a thread adds its part of a column to the output, which starts at zero.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    column_sums(const float* __restrict__ x, float* __restrict__ out, int rows, int columns) {
  const int column = blockIdx.x * kThreads + threadIdx.x;
  if (column >= columns) return;
  const int part = (rows + gridDim.y - 1) / gridDim.y;
  const int begin = blockIdx.y * part;
  const int end = min(rows, begin + part);
  float sum = 0.0f;
#pragma unroll 8
  for (int row = begin; row < end; ++row) sum += x[row * columns + column];
  atomicAdd(out + column, sum);
}
