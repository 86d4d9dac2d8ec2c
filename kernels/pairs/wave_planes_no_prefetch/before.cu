// A step of the acoustic wave equation in three dimensions, fourth order in space: a block takes 32
// by 8 columns of the grid and goes through the planes. A plane is in shared memory with two cells
// around it, the planes above and below in registers. Past the edge the wave is zero. What is
// wrong: a plane's values are loaded when they are needed, and each barrier waits for them.
//
// Architectures: sm_80, sm_90a.

constexpr int kWidth = 32;
constexpr int kHeight = 8;
constexpr int kHalo = 2;

extern "C" __global__ void __launch_bounds__(kWidth* kHeight)
    wave(const float* __restrict__ now, const float* __restrict__ past,
         const float* __restrict__ speed, float* __restrict__ out, int planes, int rows,
         int columns) {
  __shared__ float tile[kHeight + 2 * kHalo][kWidth + 2 * kHalo];
  const int column = blockIdx.x * kWidth + threadIdx.x;
  const int row = blockIdx.y * kHeight + threadIdx.y;
  const int x = threadIdx.x + kHalo;
  const int y = threadIdx.y + kHalo;
  const int plane = rows * columns;
  int i = row * columns + column;

  float below2 = 0.0f, below = 0.0f;
  float center = now[i];
  float above = now[i + plane];
  for (int z = 0; z < planes; ++z, i += plane) {
    const float above2 = z + 2 < planes ? now[i + 2 * plane] : 0.0f;
    tile[y][x] = center;
    if (threadIdx.y < kHalo) {
      tile[y - kHalo][x] = row >= kHalo ? now[i - kHalo * columns] : 0.0f;
      tile[y + kHeight][x] = row + kHeight < rows ? now[i + kHeight * columns] : 0.0f;
    }
    if (threadIdx.x < kHalo) {
      tile[y][x - kHalo] = column >= kHalo ? now[i - kHalo] : 0.0f;
      tile[y][x + kWidth] = column + kWidth < columns ? now[i + kWidth] : 0.0f;
    }
    __syncthreads();
    const float near = tile[y][x - 1] + tile[y][x + 1] + tile[y - 1][x] + tile[y + 1][x];
    const float far = tile[y][x - 2] + tile[y][x + 2] + tile[y - 2][x] + tile[y + 2][x];
    const float laplacian = -7.5f * center + (4.0f / 3.0f) * (near + below + above) -
                            (1.0f / 12.0f) * (far + below2 + above2);
    out[i] = 2.0f * center - past[i] + speed[i] * laplacian;
    __syncthreads();
    below2 = below, below = center, center = above, above = above2;
  }
}
