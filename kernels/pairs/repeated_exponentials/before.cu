// Soft quantisation: each value becomes the mean of 64 equidistant levels, weighted by a Gaussian
// of their distance. Every weight is an exponential of its own, though the quotients of
// neighbouring weights form a geometric series; the special function unit is busy without a break.
// Architectures: sm_80, sm_90a.

constexpr int kLevels = 64;
constexpr int kThreads = 256;
constexpr float kSharpness = 0x1p-5f;  // the largest for which no weight underflows

__device__ __forceinline__ float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    soft_quantise(const float* __restrict__ values, float* __restrict__ out, int count) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const float value = values[i] * (kLevels - 1);
  float sum = 0.0f;
  float weights = 0.0f;
#pragma unroll
  for (int level = 0; level < kLevels; ++level) {
    const float distance = value - level;
    const float weight = exp2_approximate(-kSharpness * distance * distance);
    weights += weight;
    sum += weight * level;
  }
  out[i] = sum / weights;
}
