// The mean voltage of neurons, whose membrane responds by a polynomial of degree 11. There are as
// many neurons as threads that keep one warp on each scheduler. Estrin's scheme takes pairs of
// terms, and pairs of those, which don't wait for one another.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kSteps = 4096;
constexpr float kStep = 0.05f;

__device__ __forceinline__ float response(float v) {
  const float v2 = v * v;
  const float v4 = v2 * v2;
  const float v8 = v4 * v4;
  const float terms_0_3 = (0.125f + 1.0f * v) + (0.05f + 0.3f * v) * v2;
  const float terms_4_7 = (-0.02f + 0.1f * v) + (0.015f + 0.05f * v) * v2;
  const float terms_8_11 = (-0.01f + 0.02f * v) + (0.005f + 0.01f * v) * v2;
  return (terms_0_3 + terms_4_7 * v4) + terms_8_11 * v8;
}

// Explicit Euler; the drive is the same for all neurons and lies in shared memory.
extern "C" __global__ void __launch_bounds__(kThreads)
    mean_voltages(const float* __restrict__ currents, const float* __restrict__ drive,
                  float* __restrict__ out) {
  __shared__ float added[kSteps];
  for (int i = threadIdx.x; i < kSteps; i += kThreads) added[i] = kStep * drive[i];
  __syncthreads();
  const int neuron = blockIdx.x * kThreads + threadIdx.x;
  const float current = kStep * currents[neuron];
  float voltage = 0.0f;
  float sum = 0.0f;
#pragma unroll 4
  for (int step = 0; step < kSteps; ++step) {
    voltage = voltage + (current + added[step]) - kStep * response(voltage);
    sum += voltage;
  }
  out[neuron] = sum / kSteps;
}
