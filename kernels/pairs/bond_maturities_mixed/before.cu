// Prices a portfolio of bonds on a Nelson-Siegel yield curve, a thread for each bond. What is wrong:
// bonds have 1 to 120 coupons in random order, and a warp runs as long as its longest bond.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

struct Curve {
  float level, slope, decay;
};

__device__ __forceinline__ float discount(const Curve& curve, float years) {
  const float yield = curve.level + curve.slope * expf(-curve.decay * years);
  return expf(-yield * years);
}

__device__ float price(const Curve& curve, int coupons, float rate) {
  float sum = 0.0f;
  for (int k = 1; k <= coupons; ++k) sum += discount(curve, 0.25f * k);
  return rate * sum + discount(curve, 0.25f * coupons);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    bond_prices(const int* __restrict__ coupons, const float* __restrict__ rates,
                float* __restrict__ out, float level, float slope, float decay) {
  const Curve curve = {level, slope, decay};
  const int bond = blockIdx.x * kThreads + threadIdx.x;
  out[bond] = price(curve, coupons[bond], rates[bond]);
}
