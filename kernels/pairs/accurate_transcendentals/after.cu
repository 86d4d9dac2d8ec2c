// A sum of waves with growing frequency and falling amplitude at each point t of [0, 1).
// The fast versions run on the special function unit, two instructions and one, and are exact
// enough for arguments this small.
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
    sum += __powf(t, 0.25f * order) * __cosf(0.375f * order * t);
  }
  out[i] = sum;
}
