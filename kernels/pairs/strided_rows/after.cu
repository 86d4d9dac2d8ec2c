// Sums the rows of a row-major matrix, one warp a row: the lanes read neighbouring addresses, a
// load takes whole sectors, and a shuffle adds up what the lanes have.
//
// Architectures: sm_80, sm_90a.

extern "C" __global__ void row_sums(const float* __restrict__ x, float* __restrict__ out, int rows,
                                    int columns) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* source = x + static_cast<long long>(row) * columns;
  float sum = 0.0f;
  for (int column = lane; column < columns; column += 32) {
    sum += source[column];
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (lane == 0) out[row] = sum;
}
