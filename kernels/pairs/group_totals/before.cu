// Totals of a quantity by group: SELECT SUM(quantity) ... GROUP BY a column of 32 values. out
// starts at zero.
// What is wrong: every row is an atomic addition to one of 32 neighboring floats in global memory,
// where all blocks meet.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    group_totals(const int* __restrict__ groups, const int* __restrict__ quantities,
                 float* __restrict__ out, int n) {
#pragma unroll 4
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) {
    atomicAdd(out + groups[i], static_cast<float>(quantities[i]));
  }
}
