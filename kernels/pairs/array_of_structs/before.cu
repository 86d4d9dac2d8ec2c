// Computes an energy for each particle of an array of structs. What is wrong: each thread reads its
// own struct, member by member, so the lanes of a warp are 60 bytes apart in every load.
//
// Architectures: sm_80, sm_90a.

struct Particle {
  float position[3], velocity[3], force[3], spin[3], mass, charge, radius;
};

__device__ __forceinline__ float dot(const float (&a)[3], const float (&b)[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

extern "C" __global__ void energies(const Particle* __restrict__ particles,
                                    float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Particle particle = particles[i];
  out[i] = particle.mass * dot(particle.velocity, particle.velocity) +
           particle.charge * dot(particle.position, particle.force) +
           particle.radius * dot(particle.spin, particle.spin);
}
