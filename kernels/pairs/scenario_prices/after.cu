// Mean price of a European call (Black-Scholes) under four volatilities. Spots, strikes and times
// are given as fractions of their ranges.
// All in float.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kScenarios = 4;

__device__ __forceinline__ float normal_cdf(float x) {
  return 0.5f * erfcf(-x * 0.70710678f);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    prices(const float* __restrict__ spots, const float* __restrict__ strikes,
           const float* __restrict__ years, float* __restrict__ out, float rate, int n) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  const float spot = 50.0f + 100.0f * spots[i];
  const float strike = 50.0f + 100.0f * strikes[i];
  const float time = 0.25f + 2.0f * years[i];
  float sum = 0.0f;
#pragma unroll
  for (int scenario = 0; scenario < kScenarios; ++scenario) {
    const float volatility = 0.15f + 0.1f * scenario;
    const float spread = volatility * sqrtf(time);
    const float d1 =
        (logf(spot / strike) + (rate + 0.5f * volatility * volatility) * time) / spread;
    const float discounted = strike * expf(-rate * time);
    sum += spot * normal_cdf(d1) - discounted * normal_cdf(d1 - spread);
  }
  out[i] = sum / kScenarios;
}
