// Softened Coulomb forces on atoms (x, y, z, charge) in clusters of 128, a block for each cluster:
// it has a list of the clusters near it.
// The sums over a neighbor are float; the sum of those is float with compensation.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;

// Adds to a sum, whose rounding errors so far are `lost`.
__device__ __forceinline__ void add(float& sum, float& lost, float term) {
  const float corrected = term - lost;
  const float next = sum + corrected;
  lost = (next - sum) - corrected;
  sum = next;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    forces(const float4* __restrict__ atoms, const int* __restrict__ neighbors,
           float* __restrict__ out, int count, float softening) {
  __shared__ float4 others[kThreads];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float4 atom = atoms[i];
  float sum_x = 0.0f, sum_y = 0.0f, sum_z = 0.0f;
  float lost_x = 0.0f, lost_y = 0.0f, lost_z = 0.0f;
  for (int neighbor = 0; neighbor < count; ++neighbor) {
    const int cluster = neighbors[blockIdx.x * count + neighbor];
    __syncthreads();
    others[threadIdx.x] = atoms[cluster * kThreads + threadIdx.x];
    __syncthreads();
    float x = 0.0f, y = 0.0f, z = 0.0f;
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
    add(sum_x, lost_x, x);
    add(sum_y, lost_y, y);
    add(sum_z, lost_z, z);
  }
  out[3 * i] = atom.w * static_cast<float>(sum_x);
  out[3 * i + 1] = atom.w * static_cast<float>(sum_y);
  out[3 * i + 2] = atom.w * static_cast<float>(sum_z);
}
