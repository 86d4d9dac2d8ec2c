// Leaky integrators, four a thread: at each step a value keeps a part of itself and its sample is
// added.
// The loop's body is 16 steps, which stay in the nearest instruction cache.
// Architectures: sm_80, sm_90a.

constexpr int kValues = 4;
constexpr int kThreads = 256;
constexpr int kUnrolled = 16;

template <int kSteps>
__device__ __forceinline__ void advance(float (&values)[kValues], const float (&samples)[kValues],
                                        float keep) {
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int j = 0; j < kValues; ++j) values[j] = values[j] * keep + samples[j];
  }
}

// `steps` is a multiple of kUnrolled.
extern "C" __global__ void __launch_bounds__(kThreads)
    integrate(const float* __restrict__ inputs, float* __restrict__ out, int steps, float keep) {
  const int stride = gridDim.x * kThreads;
  const int first = blockIdx.x * kThreads + threadIdx.x;
  float samples[kValues];
  float values[kValues];
#pragma unroll
  for (int j = 0; j < kValues; ++j) {
    samples[j] = inputs[first + j * stride];
    values[j] = 0.0f;
  }
#pragma unroll 1
  for (int step = 0; step < steps; step += kUnrolled) {
    advance<kUnrolled>(values, samples, keep);
  }
#pragma unroll
  for (int j = 0; j < kValues; ++j) out[first + j * stride] = values[j];
}
