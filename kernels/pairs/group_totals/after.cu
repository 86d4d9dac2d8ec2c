// Totals of a quantity by group: SELECT SUM(quantity) ... GROUP BY a column of 32 values. out
// starts at zero.
// A warp adds to its own totals in shared memory, which are summed at the end.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kGroups = 32;

extern "C" __global__ void __launch_bounds__(kThreads)
    group_totals(const int* __restrict__ groups, const int* __restrict__ quantities,
                 float* __restrict__ out, int n) {
  __shared__ int totals[kWarps][kGroups];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  totals[warp][lane] = 0;
  __syncwarp();

#pragma unroll 4
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) {
    atomicAdd(&totals[warp][groups[i]], quantities[i]);
  }
  __syncthreads();

  if (threadIdx.x < kGroups) {
    int total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += totals[w][threadIdx.x];
    atomicAdd(out + threadIdx.x, static_cast<float>(total));
  }
}
