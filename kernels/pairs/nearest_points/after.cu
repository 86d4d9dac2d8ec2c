// The squares of each point's k smallest distances to known points, in order; a thread for each
// point keeps a sorted array.
// k is a constant, and all indices of the unrolled loop are known: the array is in registers.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kTile = 512;
constexpr int kNearest = 16;

extern "C" __global__ void __launch_bounds__(kThreads)
    nearest_points(const float* __restrict__ points, const float* __restrict__ known,
                   float* __restrict__ out, int n, int count, int k) {
  __shared__ float4 tile[kTile];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float x = points[3 * i], y = points[3 * i + 1], z = points[3 * i + 2];
  float nearest[kNearest];
#pragma unroll
  for (int j = 0; j < kNearest; ++j) nearest[j] = 1e30f;

  for (int first = 0; first < count; first += kTile) {
    __syncthreads();
    for (int j = threadIdx.x; j < kTile; j += kThreads) {
      tile[j] = reinterpret_cast<const float4*>(known)[first + j];
    }
    __syncthreads();
    for (int other = 0; other < kTile; ++other) {
      const float dx = x - tile[other].x;
      const float dy = y - tile[other].y;
      const float dz = z - tile[other].z;
      float distance = dx * dx + dy * dy + dz * dz;
      if (distance < nearest[kNearest - 1]) {
#pragma unroll
        for (int j = 0; j < kNearest; ++j) {
          const float smaller = fminf(nearest[j], distance);
          distance = fmaxf(nearest[j], distance);
          nearest[j] = smaller;
        }
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kNearest; ++j) out[j * n + i] = nearest[j];
}
