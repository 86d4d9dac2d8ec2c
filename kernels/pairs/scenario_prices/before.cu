// Mean price of a European call (Black-Scholes) under four volatilities. Spots, strikes and times
// are given as fractions of their ranges.
// What is wrong: the arrays are float, but the literals and functions are double.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kScenarios = 4;

__device__ __forceinline__ double normal_cdf(double x) {
  return 0.5 * erfc(-x * 0.7071067811865476);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    prices(const float* __restrict__ spots, const float* __restrict__ strikes,
           const float* __restrict__ years, float* __restrict__ out, float rate, int n) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  const double spot = 50.0 + 100.0 * spots[i];
  const double strike = 50.0 + 100.0 * strikes[i];
  const double time = 0.25 + 2.0 * years[i];
  double sum = 0.0;
#pragma unroll
  for (int scenario = 0; scenario < kScenarios; ++scenario) {
    const double volatility = 0.15 + 0.1 * scenario;
    const double spread = volatility * sqrt(time);
    const double d1 =
        (log(spot / strike) + (rate + 0.5 * volatility * volatility) * time) / spread;
    const double discounted = strike * exp(-rate * time);
    sum += spot * normal_cdf(d1) - discounted * normal_cdf(d1 - spread);
  }
  out[i] = sum / kScenarios;
}
