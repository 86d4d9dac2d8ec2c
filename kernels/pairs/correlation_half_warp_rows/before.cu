// The correlation of two images in 3 by 3 pixels around each, to compare a part with its model. A
// block of 16 by 16 threads takes its pixels and those around them through shared memory. What is
// wrong: the two rows of a warp are 18 words apart, so that they share two of the 32 banks, and
// each load takes two passes.
//
// Architectures: sm_80, sm_90a.

constexpr int kTile = 16;
constexpr int kPitch = kTile + 2;

extern "C" __global__ void __launch_bounds__(kTile* kTile)
    correlations(const float* __restrict__ part, const float* __restrict__ model,
                 float* __restrict__ out, int rows, int columns, float least) {
  __shared__ float tile_a[kTile + 2][kPitch];
  __shared__ float tile_b[kTile + 2][kPitch];
  const int thread = threadIdx.y * kTile + threadIdx.x;
#pragma unroll 1
  for (int i = thread; i < (kTile + 2) * (kTile + 2); i += kTile * kTile) {
    const int y = i / (kTile + 2);
    const int x = i % (kTile + 2);
    const int near_row = min(max(static_cast<int>(blockIdx.y) * kTile + y - 1, 0), rows - 1);
    const int near_column = min(max(static_cast<int>(blockIdx.x) * kTile + x - 1, 0), columns - 1);
    tile_a[y][x] = part[near_row * columns + near_column];
    tile_b[y][x] = model[near_row * columns + near_column];
  }
  __syncthreads();

  float a = 0.0f, b = 0.0f, aa = 0.0f, bb = 0.0f, ab = 0.0f;
#pragma unroll
  for (int i = 0; i < 9; ++i) {
    const float u = tile_a[threadIdx.y + i / 3][threadIdx.x + i % 3] - 0.5f;
    const float v = tile_b[threadIdx.y + i / 3][threadIdx.x + i % 3] - 0.5f;
    a += u, b += v, aa += u * u, bb += v * v, ab += u * v;
  }
  const float variances = (9.0f * aa - a * a) * (9.0f * bb - b * b);
  const int column = blockIdx.x * kTile + threadIdx.x;
  const int row = blockIdx.y * kTile + threadIdx.y;
  if (row < rows && column < columns) {
    out[row * columns + column] = (9.0f * ab - a * b) * rsqrtf(variances + least);
  }
}
