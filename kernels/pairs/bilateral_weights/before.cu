// A bilateral filter of 5 by 5 pixels with clamped borders, a thread for each pixel: the weight of
// a neighbor falls with its distance and with the difference in brightness. What is wrong: expf is
// accurate to two units in the last place, which no weight needs, and takes several instructions
// around its one special function.
//
// Architectures: sm_80, sm_90a.

constexpr int kRadius = 2;

extern "C" __global__ void bilateral(const float* __restrict__ image, float* __restrict__ out,
                                     int rows, int columns, float distance, float difference) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= columns) return;
  const float center = image[row * columns + column];
  float sum = 0.0f;
  float weights = 0.0f;
#pragma unroll
  for (int dy = -kRadius; dy <= kRadius; ++dy) {
    const float* line = image + min(max(row + dy, 0), rows - 1) * columns;
#pragma unroll
    for (int dx = -kRadius; dx <= kRadius; ++dx) {
      const float value = line[min(max(column + dx, 0), columns - 1)];
      const float d = value - center;
      const float weight = expf(distance * (dx * dx + dy * dy) + difference * d * d);
      sum += weight * value;
      weights += weight;
    }
  }
  out[row * columns + column] = __fdividef(sum, weights);
}
