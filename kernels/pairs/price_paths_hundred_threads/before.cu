// Monte Carlo paths of an asset for an Asian option, a thread for each path: normal numbers by Box
// and Muller from a xorshift generator, and the mean price over the path. What is wrong: blocks of
// a hundred threads, so that the last of their four warps has four threads.
//
// Architectures: sm_80, sm_90a.

__device__ __forceinline__ float uniform(unsigned& state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return (static_cast<float>(state >> 9) + 0.5f) * 1.1920929e-7f;
}

extern "C" __global__ void mean_prices(const int* __restrict__ seeds, float* __restrict__ out,
                                       int paths, int steps, float drift, float volatility) {
  const int path = blockIdx.x * blockDim.x + threadIdx.x;
  if (path >= paths) return;
  unsigned state = seeds[path];
  float logarithm = 0.0f;
  float sum = 0.0f;
  for (int step = 0; step < steps; step += 2) {
    const float radius = sqrtf(-2.0f * __logf(uniform(state)));
    float sine, cosine;
    __sincosf(6.28318531f * (uniform(state) - 0.5f), &sine, &cosine);
    logarithm += drift + volatility * (radius * cosine);
    sum += __expf(logarithm);
    logarithm += drift + volatility * (radius * sine);
    sum += __expf(logarithm);
  }
  out[path] = sum / steps;
}
