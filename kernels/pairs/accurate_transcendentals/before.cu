// A sum of waves with growing frequency and falling amplitude at each point t of [0, 1).
// powf and cosf are the accurate versions: tens of instructions each, with branches for the
// arguments that are hard, far more exact than the sum needs.
// Architectures: sm_80, sm_90a.

constexpr int kWaves = 16;
constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    sum_waves(const float* __restrict__ points, float* __restrict__ out, int count) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const float t = points[i];
  float sum = 0.0f;
#pragma unroll 1
  for (int wave = 1; wave <= kWaves; ++wave) {
    const float order = wave;
    sum += powf(t, 0.25f * order) * cosf(0.375f * order * t);
  }
  out[i] = sum;
}
