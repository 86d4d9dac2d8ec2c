// Steps the temperature of an ocean model: T + dt (advection + diffusion - damping T), with loads
// and stores of 16 bytes.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    step(const float4* __restrict__ temperature, const float4* __restrict__ advection,
         const float4* __restrict__ diffusion, float4* __restrict__ out, float dt, float damping) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float4 t = temperature[i];
  const float4 a = advection[i];
  const float4 d = diffusion[i];
  out[i] = make_float4(
      t.x + dt * (a.x + d.x - damping * t.x), t.y + dt * (a.y + d.y - damping * t.y),
      t.z + dt * (a.z + d.z - damping * t.z), t.w + dt * (a.w + d.w - damping * t.w));
}
