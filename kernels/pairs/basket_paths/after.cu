// Payoffs of an option on a basket of five correlated assets, a thread for each path: at each step
// five random shocks are mixed and added to the logarithms of the prices.
// Blocks of 128 paths are spread over the SMs, and there is one wave.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kBlocks = 10;  // on an SM
constexpr int kAssets = 5;

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    payoffs(const int* __restrict__ seeds, const float* __restrict__ mixing,
            float* __restrict__ out, int steps) {
  __shared__ float mixed[kAssets][kAssets];
  if (threadIdx.x < kAssets * kAssets) {
    mixed[threadIdx.x / kAssets][threadIdx.x % kAssets] = mixing[threadIdx.x];
  }
  __syncthreads();

  const int path = blockIdx.x * kThreads + threadIdx.x;
  unsigned state = seeds[path];
  float logs[kAssets] = {};
  float mean = 0.0f;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    float shocks[kAssets];
#pragma unroll
    for (int j = 0; j < kAssets; ++j) {
      state = state * 1664525u + 1013904223u;
      shocks[j] = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
    }
    float basket = 0.0f;
#pragma unroll
    for (int i = 0; i < kAssets; ++i) {
#pragma unroll
      for (int j = 0; j < kAssets; ++j) logs[i] += mixed[i][j] * shocks[j];
      basket += __expf(logs[i]);
    }
    mean += basket;
  }
  out[path] = fmaxf(mean / (kAssets * steps) - 0.5f, 0.0f);
}
