// Electrostatic energy of each atom with the atoms of its neighborhood, with a switching function
// between two radii. The squared distance is clamped to the radii, so that one expression is 1
// inside, 0 outside and the switching function between them.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;

extern "C" __global__ void __launch_bounds__(kThreads)
    switched_energy(const float4* __restrict__ atoms, float* __restrict__ out, int count,
                    int neighborhood, float on2, float off2, float softening) {
  __shared__ float4 tile[kThreads];
  const int first = blockIdx.x * kThreads;
  const float4 own = atoms[first + threadIdx.x];
  const float range = off2 - on2;
  const float scale = 1.0f / (range * range * range);
  float energy = 0.0f;
  for (int start = 0; start < neighborhood; start += kThreads) {
    int source = first + start + threadIdx.x;
    if (source >= count) source -= count;
    tile[threadIdx.x] = atoms[source];
    __syncthreads();
    for (int j = 0; j < kThreads; ++j) {
      const float4 other = tile[j];
      const float dx = own.x - other.x;
      const float dy = own.y - other.y;
      const float dz = own.z - other.z;
      const float r2 = dx * dx + dy * dy + dz * dz;
      const float between = fminf(fmaxf(r2, on2), off2);
      const float rest = off2 - between;
      const float shape = rest * rest * (off2 + 2.0f * between - 3.0f * on2) * scale;
      energy += other.w * rsqrtf(r2 + softening) * shape;
    }
    __syncthreads();
  }
  out[first + threadIdx.x] = own.w * energy;
}
