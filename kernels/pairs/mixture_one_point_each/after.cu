// The logarithm of a Gaussian mixture's density at points of eight dimensions; the components are
// in shared memory. A thread takes two points, so that it reads a component once for both.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kDimensions = 8;
constexpr int kMost = 64;  // components
constexpr int kEach = 2;   // points a thread

extern "C" __global__ void __launch_bounds__(kThreads)
    densities(const float* __restrict__ points, const float* __restrict__ means,
              const float* __restrict__ scales, const float* __restrict__ weights,
              float* __restrict__ out, int n, int components) {
  __shared__ float mean[kDimensions][kMost];
  __shared__ float scale[kMost];
  __shared__ float weight[kMost];
  for (int i = threadIdx.x; i < components * kDimensions; i += kThreads) {
    mean[i % kDimensions][i / kDimensions] = means[i];
  }
  if (threadIdx.x < components) {
    scale[threadIdx.x] = scales[threadIdx.x];
    weight[threadIdx.x] = weights[threadIdx.x];
  }
  __syncthreads();

  const int first = blockIdx.x * kThreads * kEach + threadIdx.x;
  float x[kEach][kDimensions];
  float sums[kEach] = {};
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
#pragma unroll
    for (int d = 0; d < kDimensions; ++d) x[e][d] = points[d * n + first + e * kThreads];
  }
#pragma unroll 2
  for (int c = 0; c < components; ++c) {
    float squares[kEach] = {};
#pragma unroll
    for (int d = 0; d < kDimensions; ++d) {
      const float middle = mean[d][c];
#pragma unroll
      for (int e = 0; e < kEach; ++e) squares[e] += (x[e][d] - middle) * (x[e][d] - middle);
    }
#pragma unroll
    for (int e = 0; e < kEach; ++e) sums[e] += weight[c] * __expf(-scale[c] * squares[e]);
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) out[first + e * kThreads] = logf(sums[e]);
}
