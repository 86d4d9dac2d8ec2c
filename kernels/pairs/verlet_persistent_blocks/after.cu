// Moves particles by a time step: x + v dt + a dt^2 / 2. The grid is as many blocks as 132 SMs hold
// at a time, and each goes through the particles in steps of the grid.
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
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) {
    const float4 p = x[i];
    const float4 q = v[i];
    const float4 r = a[i];
    out[i] = make_float4(moved(p.x, q.x, r.x, dt), moved(p.y, q.y, r.y, dt),
                         moved(p.z, q.z, r.z, dt), moved(p.w, q.w, r.w, dt));
  }
}
