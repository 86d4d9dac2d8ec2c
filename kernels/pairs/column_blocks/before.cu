// Saturation adjustment in columns of 40 levels: vapor above saturation condenses and warms the
// air, in a number of iterations. Temperatures and pressures are scaled.
// What is wrong: a block is a column, a thread a level, and 40 threads take two warps of 32.
//
// Architectures: sm_80, sm_90a.

constexpr int kLevels = 40;

extern "C" __global__ void adjust(const float* __restrict__ temperatures,
                                  const float* __restrict__ vapors,
                                  const float* __restrict__ surfaces, float* __restrict__ out,
                                  int iterations) {
  const int level = threadIdx.x;
  const int column = blockIdx.x;
  const int i = column * kLevels + level;
  const float pressure = (0.9f + 0.1f * surfaces[column]) * (1.0f - 0.02f * level);
  const float vapor = 0.5f + 0.5f * vapors[i];
  const float start = 1.0f + 0.2f * temperatures[i];
  float temperature = start;
#pragma unroll 1
  for (int iteration = 0; iteration < iterations; ++iteration) {
    const float saturated = 0.5f * expf(2.0f - 2.0f / temperature) / pressure;
    const float surplus = 0.5f * (vapor - saturated);
    temperature = 0.5f * (temperature + start + 0.1f * surplus);
  }
  out[i] = temperature;
}
