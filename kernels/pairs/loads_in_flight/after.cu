// A recursive filter along the columns of a matrix, a thread for each column: every output depends
// on the one before, so there are no more threads than columns. __restrict__ tells the compiler
// that the stores can't change x, so that eight loads are in flight.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    recursive_filter(const float* __restrict__ x, float* __restrict__ out, int rows, int columns,
                     float decay) {
  const int column = blockIdx.x * kThreads + threadIdx.x;
  if (column >= columns) return;
  float y = 0.0f;
#pragma unroll 8
  for (int row = 0; row < rows; ++row) {
    y = decay * y + x[row * columns + column];
    out[row * columns + column] = y;
  }
}
