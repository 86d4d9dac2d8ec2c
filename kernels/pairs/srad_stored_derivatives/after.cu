// One step of speckle-reducing anisotropic diffusion: a diffusion coefficient for each pixel, then
// the update from the coefficients, which computes the differences to the neighbors again.
//
// Architectures: sm_80, sm_90a.

struct Differences {
  float center, north, south, west, east;
};

__device__ __forceinline__ Differences differences(const float* __restrict__ image, int row,
                                                   int column, int rows, int columns) {
  Differences d;
  d.center = 1.0f + image[row * columns + column];
  d.north = 1.0f + image[max(row - 1, 0) * columns + column] - d.center;
  d.south = 1.0f + image[min(row + 1, rows - 1) * columns + column] - d.center;
  d.west = 1.0f + image[row * columns + max(column - 1, 0)] - d.center;
  d.east = 1.0f + image[row * columns + min(column + 1, columns - 1)] - d.center;
  return d;
}

extern "C" __global__ void coefficients(const float* __restrict__ image, float* __restrict__ c,
                                        int rows, int columns, float q0) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= columns) return;
  const Differences d = differences(image, row, column, rows, columns);
  const float squares =
      d.north * d.north + d.south * d.south + d.west * d.west + d.east * d.east;
  const float g2 = squares / (d.center * d.center);
  const float l = (d.north + d.south + d.west + d.east) / d.center;
  const float denominator = 1.0f + 0.25f * l;
  const float q = (0.5f * g2 - 0.0625f * l * l) / (denominator * denominator);
  const float value = 1.0f / (1.0f + (q - q0) / (q0 * (1.0f + q0)));
  c[row * columns + column] = fminf(fmaxf(value, 0.0f), 1.0f);
}

extern "C" __global__ void update(const float* __restrict__ image, const float* __restrict__ c,
                                  float* __restrict__ out, int rows, int columns, float rate) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= columns) return;
  const Differences d = differences(image, row, column, rows, columns);
  const float here = c[row * columns + column];
  const float below = c[min(row + 1, rows - 1) * columns + column];
  const float right = c[row * columns + min(column + 1, columns - 1)];
  const float divergence = here * d.north + below * d.south + here * d.west + right * d.east;
  out[row * columns + column] = d.center + 0.25f * rate * divergence;
}
