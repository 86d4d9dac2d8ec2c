// Voltages along dendrites of 32 compartments, a warp for each: a compartment leaks, takes up its
// current and exchanges charge with its neighbors; the ends are closed.
// What is wrong: a step ends in a barrier of the whole block, so that 32 dendrites, which have
// nothing to do with each other, wait for one another in every step.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 1024;

extern "C" __global__ void __launch_bounds__(kThreads)
    cable(const float* __restrict__ currents, float* __restrict__ out, int steps, float coupling,
          float leak) {
  __shared__ float voltages[2][kThreads];
  const int lane = threadIdx.x % 32;
  const int left = threadIdx.x - (lane > 0);
  const int right = threadIdx.x + (lane < 31);
  const int i = blockIdx.x * kThreads + threadIdx.x;

  const float current = currents[i];
  const float kept = 1.0f - leak - 2.0f * coupling;
  float voltage = 0.0f;
  for (int step = 0; step < steps; ++step) {
    float* now = voltages[step % 2];
    now[threadIdx.x] = voltage;
    __syncthreads();  // neighbors of this step
    voltage = kept * voltage + coupling * (now[left] + now[right]) + current;
  }
  out[i] = voltage;
}
