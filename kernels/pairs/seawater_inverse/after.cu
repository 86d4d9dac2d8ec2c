// Finds the temperature at which seawater of a salinity has a density, all scaled to [0, 1]: the
// density is a polynomial, and each iteration steps along a fixed slope.
// Multiply-adds are fused.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

__device__ __forceinline__ void step(float& y, float x, float coefficient) {
  y = y * x + coefficient;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    temperatures(const float* __restrict__ densities, const float* __restrict__ salinities,
                 float* __restrict__ out, int iterations) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float wanted = densities[i];
  const float salinity = salinities[i];
  const float linear = 0.8f + 0.1f * salinity;
  const float constant = 0.05f * salinity * salinity - wanted;
  float x = 0.5f;
#pragma unroll 2
  for (int iteration = 0; iteration < iterations; ++iteration) {
    float y = 0.001f;
    step(y, x, -0.004f);
    step(y, x, 0.01f);
    step(y, x, -0.02f);
    step(y, x, 0.03f);
    step(y, x, -0.05f);
    step(y, x, 0.2f);
    step(y, x, linear);
    step(y, x, constant);
    step(y, -0.8f, x);
    x = y;
  }
  out[i] = x;
}
