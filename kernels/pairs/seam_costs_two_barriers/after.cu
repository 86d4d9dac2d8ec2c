// Cumulative energies of the cheapest seams over 16 rows of an image: each row adds the energy of
// a pixel to the least of the three costs above it. A block carries 256 columns, of which 16 on
// either side are a halo. Rows alternate between two buffers, so that one barrier per row is
// enough.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kHalo = 16;  // as many as there are rows
constexpr float kFar = 1e30f;

extern "C" __global__ void __launch_bounds__(kThreads)
    seam_costs(const float* __restrict__ energy, const float* __restrict__ above,
               float* __restrict__ out, int rows, int columns) {
  __shared__ float cost[2][kThreads];
  const int t = threadIdx.x;
  const int column = static_cast<int>(blockIdx.x) * (kThreads - 2 * kHalo) - kHalo + t;
  const bool inside = column >= 0 && column < columns;
  float best = inside ? above[column] : kFar;
  for (int row = 0; row < rows; ++row) {
    float* current = cost[row % 2];
    current[t] = best;
    __syncthreads();
    if (t > 0) best = fminf(best, current[t - 1]);
    if (t < kThreads - 1) best = fminf(best, current[t + 1]);
    best = inside ? best + energy[row * columns + column] : kFar;
  }
  if (t >= kHalo && t < kThreads - kHalo && inside) out[column] = best;
}
