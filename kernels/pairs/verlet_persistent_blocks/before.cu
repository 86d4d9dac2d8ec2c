// Moves particles by a time step: x + v dt + a dt^2 / 2. The grid takes 12.1 waves, so the last
// wave has blocks for few SMs. It is one of many and short, and DRAM is the limit.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

__device__ __forceinline__ float moved(float x, float v, float a, float dt) {
  return x + dt * (v + 0.5f * dt * a);
}

// n is a number of float4.
extern "C" __global__ void __launch_bounds__(kThreads)
    move(const float4* __restrict__ x, const float4* __restrict__ v, const float4* __restrict__ a,
         float4* __restrict__ out, int n, float dt) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  const float4 p = x[i];
  const float4 q = v[i];
  const float4 r = a[i];
  out[i] = make_float4(moved(p.x, q.x, r.x, dt), moved(p.y, q.y, r.y, dt),
                       moved(p.z, q.z, r.z, dt), moved(p.w, q.w, r.w, dt));
}
