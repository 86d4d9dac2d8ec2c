// Encodes points with a multiresolution hash grid: eight levels, two features a corner, trilinear.
// What is wrong: a thread goes through all levels of its point, so the tables of all levels are in
// use at the same time, more than L2 holds.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kCoarsest = 16;  // cells along an edge at level 0; twice as many at each next level

__device__ __forceinline__ unsigned hash(unsigned x, unsigned y, unsigned z) {
  return x ^ (y * 2654435761u) ^ (z * 805459861u);
}

__device__ __forceinline__ float2 features(const float2* __restrict__ table, float3 point,
                                           int level, unsigned entries) {
  const float cells = static_cast<float>(kCoarsest << level);
  const float3 scaled = make_float3(point.x * cells, point.y * cells, point.z * cells);
  const float3 cell = make_float3(floorf(scaled.x), floorf(scaled.y), floorf(scaled.z));
  const float3 part = make_float3(scaled.x - cell.x, scaled.y - cell.y, scaled.z - cell.z);
  const unsigned x = static_cast<unsigned>(cell.x);
  const unsigned y = static_cast<unsigned>(cell.y);
  const unsigned z = static_cast<unsigned>(cell.z);
  float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll
  for (unsigned corner = 0; corner < 8; ++corner) {
    const unsigned i = corner & 1, j = corner >> 1 & 1, k = corner >> 2;
    const float weight = (i ? part.x : 1.0f - part.x) * (j ? part.y : 1.0f - part.y) *
                         (k ? part.z : 1.0f - part.z);
    const unsigned entry = hash(x + i, y + j, z + k) & (entries - 1);
    const float2 value = table[level * entries + entry];
    sum.x += weight * value.x;
    sum.y += weight * value.y;
  }
  return sum;
}

// `entries` of a level are a power of 2; `out` has the features by level, then by point.
extern "C" __global__ void __launch_bounds__(kThreads)
    encode(const float* __restrict__ points, const float2* __restrict__ table,
           float2* __restrict__ out, int count, int levels, int entries) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const float3 point = make_float3(points[3 * i], points[3 * i + 1], points[3 * i + 2]);
  for (int level = 0; level < levels; ++level) {
    out[level * count + i] = features(table, point, level, entries);
  }
}
