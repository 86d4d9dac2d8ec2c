// Soft quantisation: each value becomes the mean of 64 equidistant levels, weighted by a Gaussian
// of their distance. Two exponentials a value: from there on each weight is the last times a
// quotient, and each quotient the last times a constant.
// Architectures: sm_80, sm_90a.

constexpr int kLevels = 64;
constexpr int kThreads = 256;
constexpr float kSharpness = 0x1p-5f;  // the largest for which no weight underflows
constexpr float kQuotients = 0.957603280698573647f;  // 2^(-2 kSharpness)

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
  float weight = exp2_approximate(-kSharpness * value * value);
  float quotient = exp2_approximate(kSharpness * (2.0f * value - 1.0f));
#pragma unroll
  for (int level = 0; level < kLevels; ++level) {
    weights += weight;
    sum += weight * level;
    weight *= quotient;
    quotient *= kQuotients;
  }
  out[i] = sum / weights;
}
