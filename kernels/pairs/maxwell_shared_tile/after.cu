// The magnetic update of a finite-difference time-domain scheme in two dimensions. A block loads
// its electric values once into a tile in shared memory, with one more column or row.
//
// Architectures: sm_80, sm_90a.

constexpr int kColumns = 32;
constexpr int kRows = 8;

// ex has columns + 1 columns, ey has rows + 1 rows.
extern "C" __global__ void __launch_bounds__(kColumns* kRows)
    magnetic(const float* __restrict__ ex, const float* __restrict__ ey,
             const float* __restrict__ hz, float* __restrict__ out, int columns, float rate) {
  __shared__ float tile_x[kRows][kColumns + 1];
  __shared__ float tile_y[kRows + 1][kColumns];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const int column = blockIdx.x * kColumns + x;
  const int row = blockIdx.y * kRows + y;
  tile_x[y][x] = ex[row * (columns + 1) + column];
  tile_y[y][x] = ey[row * columns + column];
  if (x == kColumns - 1) tile_x[y][x + 1] = ex[row * (columns + 1) + column + 1];
  if (y == kRows - 1) tile_y[y + 1][x] = ey[(row + 1) * columns + column];
  __syncthreads();
  const float across = tile_x[y][x + 1] - tile_x[y][x];
  const float along = tile_y[y + 1][x] - tile_y[y][x];
  out[row * columns + column] = hz[row * columns + column] - rate * (across + along);
}
