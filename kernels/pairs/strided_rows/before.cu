// Sums the rows of a row-major matrix, one thread a row. What is wrong: the lanes of a warp read
// addresses a whole row apart, so that a load touches 32 sectors and takes 4 bytes of each.
//
// Architectures: sm_80, sm_90a.

extern "C" __global__ void row_sums(const float* __restrict__ x, float* __restrict__ out, int rows,
                                    int columns) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* source = x + static_cast<long long>(row) * columns;
  float sum = 0.0f;
  for (int column = 0; column < columns; ++column) {
    sum += source[column];
  }
  out[row] = sum;
}
