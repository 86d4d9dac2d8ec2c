// The residual smoother of a geometric multigrid cycle: 27 points with one weight for each class of
// neighbors (center, faces, edges, corners). A halo of one point surrounds the input. A thread
// computes four points along y, and every value that it loads goes into up to three of them.
//
// Architectures: sm_80, sm_90a.

constexpr int kColumns = 64;
constexpr int kRows = 4;
constexpr int kPoints = 4;  // along y, of a thread

extern "C" __global__ void __launch_bounds__(kColumns* kRows)
    smooth(const float* __restrict__ u, float* __restrict__ out, int n, float center, float face,
           float edge, float corner) {
  const int x = blockIdx.x * kColumns + threadIdx.x;
  const int y = (blockIdx.y * kRows + threadIdx.y) * kPoints;
  const int z = blockIdx.z;
  if (x >= n || y >= n) return;
  const int pitch = n + 2;
  const float weights[4] = {center, face, edge, corner};
  float sums[kPoints] = {};
#pragma unroll
  for (int row = 0; row < kPoints + 2; ++row) {
    float classes[3] = {};  // of the plane across y: the point, its four neighbors, the corners
#pragma unroll
    for (int dz = 0; dz < 3; ++dz) {
#pragma unroll
      for (int dx = 0; dx < 3; ++dx) {
        classes[(dx != 1) + (dz != 1)] += u[((z + dz) * pitch + y + row) * pitch + x + dx];
      }
    }
#pragma unroll
    for (int point = 0; point < kPoints; ++point) {
      if (row < point || row > point + 2) continue;
      const int dy = row != point + 1;
#pragma unroll
      for (int k = 0; k < 3; ++k) sums[point] += weights[k + dy] * classes[k];
    }
  }
#pragma unroll
  for (int point = 0; point < kPoints; ++point) {
    out[(z * n + y + point) * n + x] = sums[point];
  }
}
