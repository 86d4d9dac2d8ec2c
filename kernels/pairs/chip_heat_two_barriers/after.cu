// The temperature of a chip from the power of its parts: four explicit steps at once. A block loads
// 32 by 32 cells and returns the 24 by 24 in the middle; past the chip's edge a cell counts as its
// own neighbor. The steps take turns with two tiles, so that one barrier is enough for each.
//
// Architectures: sm_80, sm_90a.

constexpr int kTile = 32;
constexpr int kSteps = 4;
constexpr int kInner = kTile - 2 * kSteps;

extern "C" __global__ void __launch_bounds__(kTile* kTile)
    heat(const float* __restrict__ temperature, const float* __restrict__ power,
         float* __restrict__ out, int rows, int columns, float conduction, float loss) {
  __shared__ float tiles[2][kTile][kTile];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int column = blockIdx.x * kInner + tx - kSteps;
  const int row = blockIdx.y * kInner + ty - kSteps;
  const int i = min(max(row, 0), rows - 1) * columns + min(max(column, 0), columns - 1);
  float t = temperature[i];
  const float p = power[i];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    float(&tile)[kTile][kTile] = tiles[step % 2];
    tile[ty][tx] = t;
    __syncthreads();
    float north = t, south = t, west = t, east = t;
    if (ty > 0 && row > 0) north = tile[ty - 1][tx];
    if (ty < kTile - 1 && row < rows - 1) south = tile[ty + 1][tx];
    if (tx > 0 && column > 0) west = tile[ty][tx - 1];
    if (tx < kTile - 1 && column < columns - 1) east = tile[ty][tx + 1];
    t += conduction * (north + south + west + east - 4.0f * t) + p - loss * t;
  }
  const bool inner = min(tx, ty) >= kSteps && max(tx, ty) < kTile - kSteps;
  if (inner && row < rows && column < columns) out[i] = t;
}
