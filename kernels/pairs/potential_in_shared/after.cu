// The electrostatic potential of atoms on a plane lattice, by direct summation: a thread for each
// lattice point, the atoms (position and charge) in tiles in shared memory. The
// potential is kept in a register.
//
// Architectures: sm_80, sm_90a.

constexpr int kWidth = 32;
constexpr int kHeight = 8;
constexpr int kThreads = kWidth * kHeight;

extern "C" __global__ void __launch_bounds__(kThreads)
    potentials(const float4* __restrict__ atoms, float* __restrict__ out, int count, int columns,
               float spacing, float height) {
  extern __shared__ float4 shared[];
  float4* tile = shared;
  const int thread = threadIdx.y * kWidth + threadIdx.x;
  const int column = blockIdx.x * kWidth + threadIdx.x;
  const int row = blockIdx.y * kHeight + threadIdx.y;
  const float x = spacing * column;
  const float y = spacing * row;
  float potential = 0.0f;
  for (int first = 0; first < count; first += kThreads) {
    tile[thread] = atoms[first + thread];
    __syncthreads();
#pragma unroll 4
    for (int i = 0; i < kThreads; ++i) {
      const float4 atom = tile[i];
      const float dx = atom.x - x;
      const float dy = atom.y - y;
      const float dz = atom.z - height;
      potential += atom.w * rsqrtf(dx * dx + dy * dy + dz * dz);
    }
    __syncthreads();
  }
  out[row * columns + column] = potential;
}
