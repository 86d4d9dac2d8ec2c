// Multiplies each row of x, 256 long, by eight vectors: a thread for each column, whose products
// are added up by trees in shared memory. What is wrong: the active threads of a step lie 2, 4, 8,
// ... words apart, so that they hit ever fewer banks.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kVectors = 8;

extern "C" __global__ void __launch_bounds__(kThreads)
    project(const float* __restrict__ x, const float* __restrict__ vectors,
            float* __restrict__ out, int rows) {
  __shared__ float sums[kVectors][kThreads];

  float vector[kVectors];
#pragma unroll
  for (int k = 0; k < kVectors; ++k) vector[k] = vectors[k * kThreads + threadIdx.x];

  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const float value = x[static_cast<long long>(row) * kThreads + threadIdx.x];
    __syncthreads();  // the sums of the row before are written out
#pragma unroll
    for (int k = 0; k < kVectors; ++k) sums[k][threadIdx.x] = value * vector[k];

#pragma unroll 1
    for (int stride = 1; stride < kThreads; stride *= 2) {
      __syncthreads();
      const int at = 2 * stride * threadIdx.x;
      if (at < kThreads) {
#pragma unroll
        for (int k = 0; k < kVectors; ++k) {
          sums[k][at] += sums[k][at + stride];
        }
      }
    }
    __syncthreads();
    if (threadIdx.x < kVectors) out[row * kVectors + threadIdx.x] = sums[threadIdx.x][0];
  }
}
