// The squares of each point's k smallest distances to known points, in order; a thread for each
// point keeps a sorted array.
// What is wrong: k is known at run time only, and elements are moved up one by one to where the new
// one belongs. Registers can't be indexed, so the array is in local memory.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kTile = 512;
constexpr int kMost = 64;

extern "C" __global__ void __launch_bounds__(kThreads)
    nearest_points(const float* __restrict__ points, const float* __restrict__ known,
                   float* __restrict__ out, int n, int count, int k) {
  __shared__ float4 tile[kTile];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float x = points[3 * i], y = points[3 * i + 1], z = points[3 * i + 2];
  float nearest[kMost];
  for (int j = 0; j < k; ++j) nearest[j] = 1e30f;

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
      if (distance < nearest[k - 1]) {
        int at = k - 1;
        for (; at > 0 && nearest[at - 1] > distance; --at) {
          nearest[at] = nearest[at - 1];
        }
        nearest[at] = distance;
      }
    }
  }
  for (int j = 0; j < k; ++j) out[j * n + i] = nearest[j];
}
