// The residual smoother of a geometric multigrid cycle: 27 points with one weight for each class of
// neighbors (center, faces, edges, corners). A halo of one point surrounds the input. What is
// wrong: a thread computes one point and loads all of its 27 neighbors, of which its own next
// points along y need 18 again.
//
// Architectures: sm_80, sm_90a.

constexpr int kColumns = 64;
constexpr int kRows = 4;

extern "C" __global__ void __launch_bounds__(kColumns* kRows)
    smooth(const float* __restrict__ u, float* __restrict__ out, int n, float center, float face,
           float edge, float corner) {
  const int x = blockIdx.x * kColumns + threadIdx.x;
  const int y = blockIdx.y * kRows + threadIdx.y;
  const int z = blockIdx.z;
  if (x >= n || y >= n) return;
  const int pitch = n + 2;
  const float weights[4] = {center, face, edge, corner};
  float sum = 0.0f;
#pragma unroll
  for (int dz = 0; dz < 3; ++dz) {
#pragma unroll
    for (int dy = 0; dy < 3; ++dy) {
#pragma unroll
      for (int dx = 0; dx < 3; ++dx) {
        const int distance = (dx != 1) + (dy != 1) + (dz != 1);
        sum += weights[distance] * u[((z + dz) * pitch + y + dy) * pitch + x + dx];
      }
    }
  }
  out[(z * n + y) * n + x] = sum;
}
