// The norm of each row of a matrix of gradients, a block for each row. Threads' sums are added in
// shared memory with a barrier at each of eight steps. Other blocks of the SM load meanwhile, and
// DRAM is the limit.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

// `length` is a number of float4.
extern "C" __global__ void __launch_bounds__(kThreads)
    row_norms(const float4* __restrict__ gradients, float* __restrict__ out, int length) {
  __shared__ float sums[kThreads];
  const float4* row = gradients + static_cast<long long>(blockIdx.x) * length;
  float sum = 0.0f;
#pragma unroll 4
  for (int i = threadIdx.x; i < length; i += kThreads) {
    const float4 g = row[i];
    sum += g.x * g.x + g.y * g.y + g.z * g.z + g.w * g.w;
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int active = kThreads / 2; active > 0; active /= 2) {
    if (threadIdx.x < active) sums[threadIdx.x] += sums[threadIdx.x + active];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(sums[0]);
}
