// The temperature of each cell of a hydrodynamics code, by iteration of its material's equation of
// state. A block sorts its 1024 cells by material in shared memory, so that few warps have more
// than one material. n is a multiple of 1024.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kSteps = 40;

__device__ __forceinline__ float gas(float energy, float density) {
  float t = energy;
#pragma unroll 8
  for (int step = 0; step < kSteps; ++step) t = energy - 0.1f * density * t * (1.0f - 0.2f * t);
  return t;
}

__device__ __forceinline__ float liquid(float energy, float density) {
  float t = density;
#pragma unroll 8
  for (int step = 0; step < kSteps; ++step) t = energy + t * (0.3f * density - 0.05f * t * t);
  return t;
}

__device__ __forceinline__ float solid(float energy, float density) {
  float t = 0.5f;
#pragma unroll 8
  for (int step = 0; step < kSteps; ++step) t = 0.5f * energy + density * (0.2f - 0.1f * t * t);
  return t;
}

__device__ __forceinline__ float explosive(float energy, float density) {
  float t = 1.0f;
#pragma unroll 8
  for (int step = 0; step < kSteps; ++step) t = energy * (1.0f - 0.25f * t) + 0.1f * density * t;
  return t;
}

__device__ __forceinline__ float temperature(int material, float energy, float density) {
  if (material == 0) return gas(energy, density);
  if (material == 1) return liquid(energy, density);
  if (material == 2) return solid(energy, density);
  return explosive(energy, density);
}

constexpr int kMaterials = 4;
constexpr int kEach = 4;
constexpr int kCells = kThreads * kEach;
constexpr unsigned kAllLanes = 0xffffffffu;

extern "C" __global__ void __launch_bounds__(kThreads)
    temperatures(const int* __restrict__ materials, const float* __restrict__ energies,
                 const float* __restrict__ densities, float* __restrict__ out, int n) {
  __shared__ int counts[kMaterials];
  __shared__ float energy[kCells];
  __shared__ float density[kCells];
  __shared__ short places[kCells];
  __shared__ float results[kCells];
  const int first = blockIdx.x * kCells;
  const int lane = threadIdx.x % 32;

  if (threadIdx.x < kMaterials) counts[threadIdx.x] = 0;
  __syncthreads();
  int material[kEach], rank[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    material[k] = materials[first + k * kThreads + threadIdx.x];
    int same = 0, mine = 0;
#pragma unroll
    for (int m = 0; m < kMaterials; ++m) {
      const unsigned mask = __ballot_sync(kAllLanes, material[k] == m);
      if (material[k] == m) same = __popc(mask & ((1u << lane) - 1u));
      if (lane == m) mine = __popc(mask);
    }
    int start = 0;
    if (lane < kMaterials) start = atomicAdd(&counts[lane], mine);
    rank[k] = __shfl_sync(kAllLanes, start, material[k]) + same;
  }
  __syncthreads();
  const int end_0 = counts[0];
  const int end_1 = end_0 + counts[1];
  const int end_2 = end_1 + counts[2];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int m = material[k];
    const int to = rank[k] + (m == 0 ? 0 : m == 1 ? end_0 : m == 2 ? end_1 : end_2);
    const int from = k * kThreads + threadIdx.x;
    energy[to] = energies[first + from];
    density[to] = densities[first + from];
    places[to] = static_cast<short>(from);
  }
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < kCells; i += kThreads) {
    const int m = (i >= end_0) + (i >= end_1) + (i >= end_2);
    results[places[i]] = temperature(m, energy[i], density[i]);
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    out[first + k * kThreads + threadIdx.x] = results[k * kThreads + threadIdx.x];
  }
}
