// Computes an energy for each particle of an array of structs. A block reads its structs as one run
// of floats into shared memory, neighbouring lanes neighbouring floats; each thread takes its own
// from there. A struct has an odd number of words, so that the lanes hit different banks.
//
// Architectures: sm_80, sm_90a.

struct Particle {
  float position[3], velocity[3], force[3], spin[3], mass, charge, radius;
};

constexpr int kThreads = 256;
constexpr int kFloats = sizeof(Particle) / sizeof(float);

__device__ __forceinline__ float dot(const float (&a)[3], const float (&b)[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

extern "C" __global__ void __launch_bounds__(kThreads)
    energies(const Particle* __restrict__ particles, float* __restrict__ out, int n) {
  __shared__ Particle tile[kThreads];

  const int first = blockIdx.x * kThreads;
  const int floats = min(kThreads, n - first) * kFloats;
  const float* source = reinterpret_cast<const float*>(particles + first);
  float* target = reinterpret_cast<float*>(tile);
#pragma unroll
  for (int j = 0; j < kFloats; ++j) {
    const int at = j * kThreads + threadIdx.x;
    if (at < floats) target[at] = source[at];
  }
  __syncthreads();

  const int i = first + threadIdx.x;
  if (i >= n) return;
  const Particle particle = tile[threadIdx.x];
  out[i] = particle.mass * dot(particle.velocity, particle.velocity) +
           particle.charge * dot(particle.position, particle.force) +
           particle.radius * dot(particle.spin, particle.spin);
}
