// A sparse matrix times a vector, in ELLPACK form: entry k of all rows lies together, and a
// negative column ends a row. A thread takes a row, and there are only 33792 rows. A thread loads
// four entries at a time and tests their columns afterwards. `width` is a multiple of four.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kAhead = 4;

extern "C" __global__ void __launch_bounds__(kThreads)
    multiply(const float* __restrict__ values, const int* __restrict__ columns,
             const float* __restrict__ x, float* __restrict__ out, int rows, int width) {
  const int row = blockIdx.x * kThreads + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int k = 0; k < width; k += kAhead) {
    int column[kAhead];
    float value[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      column[j] = columns[(k + j) * rows + row];
      value[j] = values[(k + j) * rows + row];
    }
    if (column[0] < 0) break;
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const float factor = x[max(column[j], 0)];
      sum += column[j] < 0 ? 0.0f : value[j] * factor;
    }
  }
  out[row] = sum;
}
