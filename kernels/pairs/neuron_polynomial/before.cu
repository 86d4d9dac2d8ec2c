// The mean voltage of neurons, whose membrane responds by a polynomial of degree 11. There are as
// many neurons as threads that keep one warp on each scheduler. What is wrong: Horner's rule is a
// chain of eleven multiply-adds, each of which waits for the one before.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kSteps = 4096;
constexpr float kStep = 0.05f;

__device__ __forceinline__ float response(float v) {
  float p = 0.01f;
  p = p * v + 0.005f;
  p = p * v + 0.02f;
  p = p * v - 0.01f;
  p = p * v + 0.05f;
  p = p * v + 0.015f;
  p = p * v + 0.1f;
  p = p * v - 0.02f;
  p = p * v + 0.3f;
  p = p * v + 0.05f;
  p = p * v + 1.0f;
  return p * v + 0.125f;
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
