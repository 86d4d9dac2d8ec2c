// Prices a portfolio of bonds on a Nelson-Siegel yield curve, a thread for each bond. A block sorts
// its bonds by their number of coupons first, so that the bonds of a warp are about as long.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kBins = 128;  // more than the coupons of any bond

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
  __shared__ int bonds_of_bin[kBins];
  __shared__ int order[kThreads];
  const int thread = threadIdx.x;
  const int own = blockIdx.x * kThreads + thread;
  const int bin = coupons[own];
  if (thread < kBins) bonds_of_bin[thread] = 0;
  __syncthreads();
  const int rank = atomicAdd(&bonds_of_bin[bin], 1);
  __syncthreads();
  for (int distance = 1; distance < kBins; distance *= 2) {
    int before = 0;
    if (thread >= distance && thread < kBins) before = bonds_of_bin[thread - distance];
    __syncthreads();
    if (thread < kBins) bonds_of_bin[thread] += before;
    __syncthreads();
  }
  const int start = bonds_of_bin[bin - 1];  // a bond has at least one coupon
  order[start + rank] = own;
  __syncthreads();
  const int bond = order[thread];
  out[bond] = price(curve, coupons[bond], rates[bond]);
}
