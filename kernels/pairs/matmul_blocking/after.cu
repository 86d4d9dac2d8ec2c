// Multiplies matrices, a thread for each element of the product: a is rows by depth, b depth by
// columns, all multiples of 32. A block has a tile of 32 by 32 of the product and reads a and b in
// such tiles through shared memory, where 32 rows or columns use what was read once.
//
// Architectures: sm_80, sm_90a.

constexpr int kTile = 32;

extern "C" __global__ void __launch_bounds__(kTile* kTile)
    matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
           int columns, int depth) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];

  const int column = blockIdx.x * kTile + threadIdx.x;
  const int row = blockIdx.y * kTile + threadIdx.y;
  float sum = 0.0f;
  for (int first = 0; first < depth; first += kTile) {
    a_tile[threadIdx.y][threadIdx.x] = a[row * depth + first + threadIdx.x];
    b_tile[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * columns + column];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile; ++k) {
      sum += a_tile[threadIdx.y][k] * b_tile[k][threadIdx.x];
    }
    __syncthreads();  // before the next tiles take their place
  }
  out[row * columns + column] = sum;
}
