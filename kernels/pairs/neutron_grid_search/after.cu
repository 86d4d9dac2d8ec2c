// Macroscopic cross sections of a material at the energies of many neutrons: finds the energy in a
// grid, then interpolates four reactions of eight nuclides. A table of buckets gives the
// short part of the grid that the binary search has to go through.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kNuclides = 8;

extern "C" __global__ void __launch_bounds__(kThreads)
    cross_sections(const float* __restrict__ energies, const float* __restrict__ grid,
                   const int* __restrict__ first_of_bucket, const float4* __restrict__ table,
                   const float* __restrict__ densities, float4* __restrict__ out, int points,
                   int points_of_unit, float scale) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float energy = energies[i] * scale;
  const int bucket = static_cast<int>(energy) / points_of_unit;
  int low = first_of_bucket[bucket] * points_of_unit;
  int high = min(first_of_bucket[bucket + 1] * points_of_unit, points - 1);
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (grid[middle] > energy) {
      high = middle;
    } else {
      low = middle;
    }
  }
  const float part = (energy - grid[low]) / (grid[low + 1] - grid[low]);
  const float4* below = table + low * kNuclides;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
  for (int k = 0; k < kNuclides; ++k) {
    const float4 a = below[k];
    const float4 b = below[k + kNuclides];
    const float density = densities[k];
    sum.x += density * (a.x + part * (b.x - a.x));
    sum.y += density * (a.y + part * (b.y - a.y));
    sum.z += density * (a.z + part * (b.z - a.z));
    sum.w += density * (a.w + part * (b.w - a.w));
  }
  out[i] = sum;
}
