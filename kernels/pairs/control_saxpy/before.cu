// Adds scaled x to y, n float4, two a thread, coalesced: nothing to mend, DRAM is the roof.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kEach = 2;  // float4 of a thread

extern "C" __global__ void __launch_bounds__(kThreads)
    saxpy(const float4* __restrict__ x, const float4* __restrict__ y, float4* __restrict__ out,
          float scale, int n) {
  const int first = blockIdx.x * kThreads * kEach + threadIdx.x;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int i = first + j * kThreads;
    if (i >= n) return;
    const float4 a = x[i];
    const float4 b = y[i];
    out[i] =
        make_float4(scale * a.x + b.x, scale * a.y + b.y, scale * a.z + b.z, scale * a.w + b.w);
  }
}
