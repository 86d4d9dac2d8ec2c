// Softened Coulomb forces on atoms (x, y, z, charge) in clusters of 128, a block for each cluster:
// it has a list of the clusters near it.
// What is wrong: the sums are double, so that every pair's three components are converted and
// added in float64.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;

extern "C" __global__ void __launch_bounds__(kThreads)
    forces(const float4* __restrict__ atoms, const int* __restrict__ neighbors,
           float* __restrict__ out, int count, float softening) {
  __shared__ float4 others[kThreads];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float4 atom = atoms[i];
  double x = 0.0, y = 0.0, z = 0.0;
  for (int neighbor = 0; neighbor < count; ++neighbor) {
    const int cluster = neighbors[blockIdx.x * count + neighbor];
    __syncthreads();
    others[threadIdx.x] = atoms[cluster * kThreads + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < kThreads; ++j) {
      const float4 other = others[j];
      const float dx = atom.x - other.x;
      const float dy = atom.y - other.y;
      const float dz = atom.z - other.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
      const float pull = other.w * inverse * inverse * inverse;
      x += pull * dx;
      y += pull * dy;
      z += pull * dz;
    }
  }
  out[3 * i] = atom.w * static_cast<float>(x);
  out[3 * i + 1] = atom.w * static_cast<float>(y);
  out[3 * i + 2] = atom.w * static_cast<float>(z);
}
