// Multiplies matrices, a thread for each element of the product: a is rows by depth, b depth by
// columns. What is wrong: a block has one row of the product, so that every row reads all of b
// anew, two loads for each multiplication, and L2 has to deliver them.
//
// Architectures: sm_80, sm_90a.

extern "C" __global__ void matmul(const float* __restrict__ a, const float* __restrict__ b,
                                  float* __restrict__ out, int columns, int depth) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y;
  if (column >= columns) return;
  float sum = 0.0f;
  for (int k = 0; k < depth; ++k) {
    sum += a[row * depth + k] * b[k * columns + column];
  }
  out[row * columns + column] = sum;
}
