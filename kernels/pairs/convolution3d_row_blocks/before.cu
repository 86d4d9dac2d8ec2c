// A 27-point convolution of a volume, a thread for each point. What is wrong: a block is one row of
// points, so of the nine rows that it reads none serves a second row of outputs, and L2 delivers
// each row nine times.
//
// Architectures: sm_80, sm_90a.

constexpr int kBlockX = 256;
constexpr int kBlockY = 1;

extern "C" __global__ void __launch_bounds__(kBlockX* kBlockY)
    convolution3d(const float* __restrict__ in, float* __restrict__ out, int nx, int ny, int nz,
                  float center, float face, float edge, float corner) {
  const int x = blockIdx.x * kBlockX + threadIdx.x;
  const int y = blockIdx.y * kBlockY + threadIdx.y;
  const int z = blockIdx.z;
  const int at = (z * ny + y) * nx + x;
  if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1) {
    out[at] = in[at];
    return;
  }
  const float weights[4] = {center, face, edge, corner};
  float sum = 0.0f;
#pragma unroll
  for (int dz = -1; dz <= 1; ++dz) {
#pragma unroll
    for (int dy = -1; dy <= 1; ++dy) {
#pragma unroll
      for (int dx = -1; dx <= 1; ++dx) {
        const int distance = (dx != 0) + (dy != 0) + (dz != 0);
        sum += weights[distance] * in[at + (dz * ny + dy) * nx + dx];
      }
    }
  }
  out[at] = sum;
}
