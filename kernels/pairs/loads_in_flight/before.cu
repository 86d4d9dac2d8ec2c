// A recursive filter along the columns of a matrix, a thread for each column: every output depends
// on the one before, so there are no more threads than columns. What is wrong: as far as the
// compiler knows, out may overlap x, so the next load waits for the store before it and so for the
// last load.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    recursive_filter(const float* x, float* out, int rows, int columns, float decay) {
  const int column = blockIdx.x * kThreads + threadIdx.x;
  if (column >= columns) return;
  float y = 0.0f;
#pragma unroll 8
  for (int row = 0; row < rows; ++row) {
    y = decay * y + x[row * columns + column];
    out[row * columns + column] = y;
  }
}
