// The temperature of each cell of a hydrodynamics code, by iteration of its material's equation of
// state. What is wrong: materials are mixed, so nearly every warp runs all four iterations, each
// with a quarter of its lanes.
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

extern "C" __global__ void __launch_bounds__(kThreads)
    temperatures(const int* __restrict__ materials, const float* __restrict__ energies,
                 const float* __restrict__ densities, float* __restrict__ out, int n) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  out[i] = temperature(materials[i], energies[i], densities[i]);
}
