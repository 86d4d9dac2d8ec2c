// Gravitational accelerations of many tracer stars in the field of 2048 massive particles, with
// softening. Particles come through shared memory, a tile at a time. What is wrong: 1 / sqrtf() is
// a correctly rounded root and a correctly rounded division, many instructions each.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    accelerations(const float4* __restrict__ stars, const float4* __restrict__ particles,
                  float4* __restrict__ out, int count, float softening) {
  __shared__ float4 tile[kThreads];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float4 star = stars[i];
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int first = 0; first < count; first += kThreads) {
    __syncthreads();
    tile[threadIdx.x] = particles[first + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kThreads; ++k) {
      const float4 particle = tile[k];
      const float x = particle.x - star.x;
      const float y = particle.y - star.y;
      const float z = particle.z - star.z;
      const float squared = x * x + y * y + z * z + softening;
      const float inverse = 1.0f / sqrtf(squared);
      const float potential = fabsf(particle.w) * inverse;
      const float strength = potential * inverse * inverse;
      sum.x += strength * x;
      sum.y += strength * y;
      sum.z += strength * z;
      sum.w -= potential;
    }
  }
  out[i] = sum;
}
