// Steps the temperature of an ocean model: T + dt (advection + diffusion - damping T), with loads
// and stores of 4 bytes. A thread takes four elements and has twelve loads in flight, and DRAM is
// the limit.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kEach = 4;

extern "C" __global__ void __launch_bounds__(kThreads)
    step(const float* __restrict__ temperature, const float* __restrict__ advection,
         const float* __restrict__ diffusion, float* __restrict__ out, float dt, float damping) {
  const int first = blockIdx.x * kThreads * kEach + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = first + k * kThreads;
    const float t = temperature[i];
    out[i] = t + dt * (advection[i] + diffusion[i] - damping * t);
  }
}
