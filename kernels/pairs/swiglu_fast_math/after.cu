// The gated activation of a feed-forward layer: up times gate times the sigmoid of gate, by the
// fast exponential and the fast division.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

__device__ __forceinline__ float silu(float x) { return __fdividef(x, 1.0f + __expf(-x)); }

// n is a number of float4.
extern "C" __global__ void __launch_bounds__(kThreads)
    swiglu(const float4* __restrict__ gate, const float4* __restrict__ up, float4* __restrict__ out,
           int n) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  const float4 g = gate[i];
  const float4 u = up[i];
  out[i] = make_float4(silu(g.x) * u.x, silu(g.y) * u.y, silu(g.z) * u.z, silu(g.w) * u.w);
}
