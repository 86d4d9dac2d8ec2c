// The squared distance of each point to the nearest of the cluster centers, a step of k-means; a
// thread for each point, the centers in shared memory. What is wrong: a thread loads its point one
// coordinate at a time, so that the lanes of each of 16 loads are 64 bytes apart.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kDimensions = 16;
constexpr int kCenters = 24;

extern "C" __global__ void __launch_bounds__(kThreads)
    distances(const float* __restrict__ points, const float* __restrict__ centers,
              float* __restrict__ out, int n) {
  __shared__ float4 near[kCenters][kDimensions / 4];
  if (threadIdx.x < kCenters * kDimensions / 4) {
    near[threadIdx.x / 4][threadIdx.x % 4] =
        reinterpret_cast<const float4*>(centers)[threadIdx.x];
  }
  __syncthreads();
  const int point = blockIdx.x * kThreads + threadIdx.x;
  if (point >= n) return;

  float x[kDimensions];
#pragma unroll
  for (int d = 0; d < kDimensions; ++d) {
    x[d] = points[point * kDimensions + d];
  }
  float least = 3e38f;
#pragma unroll 2
  for (int center = 0; center < kCenters; ++center) {
    float sum = 0.0f;
#pragma unroll
    for (int d = 0; d < kDimensions; d += 4) {
      const float4 c = near[center][d / 4];
      sum += (x[d] - c.x) * (x[d] - c.x) + (x[d + 1] - c.y) * (x[d + 1] - c.y);
      sum += (x[d + 2] - c.z) * (x[d + 2] - c.z) + (x[d + 3] - c.w) * (x[d + 3] - c.w);
    }
    least = fminf(least, sum);
  }
  out[point] = least;
}
