// Electrostatic energy of each charge (x, y, z, charge) with those before it. A block has 128 rows
// of this lower triangle, and eight threads share a row.
// What is wrong: the rows of a block follow one another, so that the last block has the longest
// ones and is at work long after the others.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 1024;
constexpr int kRows = 128;
constexpr int kParts = kThreads / kRows;

extern "C" __global__ void __launch_bounds__(kThreads)
    energies(const float4* __restrict__ charges, float* __restrict__ out, float softening) {
  __shared__ float sums[kParts][kRows];
  const int part = threadIdx.x / kRows;
  const int row = blockIdx.x * kRows + threadIdx.x % kRows;
  const float4 mine = charges[row];
  float sum = 0.0f;
#pragma unroll 4
  for (int other = part; other < row; other += kParts) {
    const float4 charge = charges[other];
    const float dx = mine.x - charge.x;
    const float dy = mine.y - charge.y;
    const float dz = mine.z - charge.z;
    sum += charge.w * rsqrtf(dx * dx + dy * dy + dz * dz + softening);
  }
  sums[part][threadIdx.x % kRows] = sum;
  __syncthreads();

  if (part == 0) {
    float total = 0.0f;
#pragma unroll
    for (int p = 0; p < kParts; ++p) total += sums[p][threadIdx.x];
    out[row] = mine.w * total;
  }
}
