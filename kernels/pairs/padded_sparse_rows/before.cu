// A sparse matrix times a vector, in ELLPACK form: entry k of all rows lies together, and a
// negative column ends a row. A thread takes a row, and there are only 33792 rows. What is wrong:
// the next entry must not be loaded before the column of this one has been tested, so each entry
// costs two latencies, one after another.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    multiply(const float* __restrict__ values, const int* __restrict__ columns,
             const float* __restrict__ x, float* __restrict__ out, int rows, int width) {
  const int row = blockIdx.x * kThreads + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int k = 0; k < width; ++k) {
    const int column = columns[k * rows + row];
    if (column < 0) break;
    sum += values[k * rows + row] * x[column];
  }
  out[row] = sum;
}
