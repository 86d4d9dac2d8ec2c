// Chi-square distances between the histograms of a database and those of some queries: a warp for
// a histogram of the database and two queries, four bins a lane at a time. So the database is read
// half as often.
//
// Architectures: sm_80, sm_90a.

constexpr int kWarps = 8;
constexpr int kQueries = 2;  // at once

__device__ __forceinline__ float share(float a, float b) {
  return (a - b) * (a - b) / (a + b);
}

extern "C" __global__ void __launch_bounds__(32 * kWarps)
    distances(const float4* __restrict__ database, const float4* __restrict__ queries,
              float* __restrict__ out, int entries, int vectors) {
  const int lane = threadIdx.x % 32;
  const int entry = blockIdx.x * kWarps + threadIdx.x / 32;
  const int first = blockIdx.y * kQueries;
  if (entry >= entries) return;
  float sums[kQueries] = {};
  for (int i = lane; i < vectors; i += 32) {
    const float4 a = database[entry * vectors + i];
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
      const float4 b = queries[(first + q) * vectors + i];
      sums[q] += share(a.x, b.x) + share(a.y, b.y) + share(a.z, b.z) + share(a.w, b.w);
    }
  }
#pragma unroll
  for (int q = 0; q < kQueries; ++q) {
#pragma unroll
    for (int other = 16; other > 0; other /= 2) {
      sums[q] += __shfl_xor_sync(0xffffffffu, sums[q], other);
    }
    if (lane == 0) out[(first + q) * entries + entry] = sums[q];
  }
}
