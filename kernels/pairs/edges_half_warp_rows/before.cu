// The strength of edges by Sobel's operator; a block of 16 by 16 threads takes its pixels and those
// around them through shared memory. What is wrong: the two rows of a warp are 18 words apart, so
// that they share two of the 32 banks, and each load takes two passes.
//
// Architectures: sm_80, sm_90a.

constexpr int kTile = 16;
constexpr int kPitch = kTile + 2;

extern "C" __global__ void __launch_bounds__(kTile* kTile)
    edges(const float* __restrict__ image, float* __restrict__ out, int rows, int columns) {
  __shared__ float tile[kTile + 2][kPitch];
  const int column = blockIdx.x * kTile + threadIdx.x;
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int x = threadIdx.x + 1;
  const int y = threadIdx.y + 1;
  const int here = min(row, rows - 1) * columns;
  const int west = max(column - 1, 0);
  const int east = min(column + 1, columns - 1);
  tile[y][x] = image[here + column];
  if (threadIdx.x == 0) tile[y][0] = image[here + west];
  if (threadIdx.x == kTile - 1) tile[y][kTile + 1] = image[here + east];
  if (threadIdx.y == 0 || threadIdx.y == kTile - 1) {
    const int to = threadIdx.y == 0 ? 0 : kTile + 1;
    const int line = columns * (to == 0 ? max(row - 1, 0) : min(row + 1, rows - 1));
    tile[to][x] = image[line + column];
    if (threadIdx.x == 0) tile[to][0] = image[line + west];
    if (threadIdx.x == kTile - 1) tile[to][kTile + 1] = image[line + east];
  }
  __syncthreads();

  const float across = tile[y - 1][x + 1] + 2.0f * tile[y][x + 1] + tile[y + 1][x + 1] -
                       tile[y - 1][x - 1] - 2.0f * tile[y][x - 1] - tile[y + 1][x - 1];
  const float down = tile[y + 1][x - 1] + 2.0f * tile[y + 1][x] + tile[y + 1][x + 1] -
                     tile[y - 1][x - 1] - 2.0f * tile[y - 1][x] - tile[y - 1][x + 1];
  out[row * columns + column] = sqrtf(across * across + down * down);
}
