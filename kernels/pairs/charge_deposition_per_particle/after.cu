// Cloud-in-cell deposition of charges on a grid. Particles are sorted by cell, 64 places for each
// cell, so that a warp has particles of one cell: it sums their parts by shuffles, and four lanes
// add the sums.
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
  float parts[4] = {(1.0f - offset.x) * (1.0f - offset.y), offset.x * (1.0f - offset.y),
                    (1.0f - offset.x) * offset.y, offset.x * offset.y};
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
#pragma unroll
    for (int k = 0; k < 4; ++k) parts[k] += __shfl_xor_sync(0xffffffffu, parts[k], lanes);
  }
  const int lane = threadIdx.x % 32;
  if (lane >= 4) return;
  const float part = lane < 2 ? (lane == 0 ? parts[0] : parts[1]) : lane == 2 ? parts[2] : parts[3];
  atomicAdd(out + (row + lane / 2) * (columns + 1) + column + lane % 2, charge * part);
}
