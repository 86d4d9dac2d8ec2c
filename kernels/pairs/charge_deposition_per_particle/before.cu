// Cloud-in-cell deposition of charges on a grid. Particles are sorted by cell, 64 places for each
// cell. What is wrong: every particle adds its four parts by atomics, and the lanes of a warp, all
// in the same cell, add to the same four addresses.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kPerCell = 64;

extern "C" __global__ void __launch_bounds__(kThreads)
    deposit(const float2* __restrict__ offsets, float* __restrict__ out, int columns,
            float charge) {
  const int particle = blockIdx.x * kThreads + threadIdx.x;
  const int cell = particle / kPerCell;
  const int row = cell / columns;
  const int column = cell % columns;
  const float2 offset = offsets[particle];
  float* corner = out + row * (columns + 1) + column;
  atomicAdd(corner, charge * (1.0f - offset.x) * (1.0f - offset.y));
  atomicAdd(corner + 1, charge * offset.x * (1.0f - offset.y));
  atomicAdd(corner + columns + 1, charge * (1.0f - offset.x) * offset.y);
  atomicAdd(corner + columns + 2, charge * offset.x * offset.y);
}
