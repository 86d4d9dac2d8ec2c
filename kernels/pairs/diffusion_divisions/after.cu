// The diffusion coefficients of speckle-reducing anisotropic diffusion, a thread for each pixel of
// an ultrasound image. The five divisions are approximate: a reciprocal and a product.
//
// Architectures: sm_80, sm_90a.

__device__ __forceinline__ float ratio(float a, float b) { return __fdividef(a, b); }

extern "C" __global__ void coefficients(const float* __restrict__ image, float* __restrict__ out,
                                        int rows, int columns, float speckle) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= columns) return;
  const int i = row * columns + column;
  const float center = image[i];
  const float north = image[row == 0 ? i : i - columns] - center;
  const float south = image[row == rows - 1 ? i : i + columns] - center;
  const float west = image[column == 0 ? i : i - 1] - center;
  const float east = image[column == columns - 1 ? i : i + 1] - center;

  const float squares = north * north + south * south + west * west + east * east;
  const float gradient = ratio(squares, center * center);
  const float laplacian = ratio(north + south + west + east, center);
  const float size = 1.0f + 0.25f * laplacian;
  const float variation =
      ratio(0.5f * gradient - 0.0625f * laplacian * laplacian, size * size);
  const float excess = ratio(variation - speckle, speckle * (1.0f + speckle));
  out[i] = __saturatef(ratio(1.0f, 1.0f + excess));
}
