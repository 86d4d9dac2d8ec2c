// Leaky integrators, four a thread: at each step a value keeps a part of itself and its sample is
// added. Nothing but fused multiply-adds, enough of them independent: the FP32 pipes run at their
// peak.
// Architectures: sm_80, sm_90a.

constexpr int kValues = 4;
constexpr int kThreads = 256;

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
#pragma unroll 32
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int j = 0; j < kValues; ++j) values[j] = values[j] * keep + samples[j];
  }
#pragma unroll
  for (int j = 0; j < kValues; ++j) out[first + j * stride] = values[j];
}
