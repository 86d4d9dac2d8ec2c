// One step of speckle-reducing anisotropic diffusion: a diffusion coefficient for each pixel, then
// the update from the coefficients. What is wrong: the first kernel also stores the four
// differences to the neighbors, which the second reads back from DRAM.
//
// Architectures: sm_80, sm_90a.

extern "C" __global__ void coefficients(const float* __restrict__ image, float* __restrict__ north,
                                        float* __restrict__ south, float* __restrict__ west,
                                        float* __restrict__ east, float* __restrict__ c, int rows,
                                        int columns, float q0) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= columns) return;
  const int i = row * columns + column;
  const float center = 1.0f + image[i];
  const float dn = 1.0f + image[max(row - 1, 0) * columns + column] - center;
  const float ds = 1.0f + image[min(row + 1, rows - 1) * columns + column] - center;
  const float dw = 1.0f + image[row * columns + max(column - 1, 0)] - center;
  const float de = 1.0f + image[row * columns + min(column + 1, columns - 1)] - center;
  const float g2 = (dn * dn + ds * ds + dw * dw + de * de) / (center * center);
  const float l = (dn + ds + dw + de) / center;
  const float denominator = 1.0f + 0.25f * l;
  const float q = (0.5f * g2 - 0.0625f * l * l) / (denominator * denominator);
  const float value = 1.0f / (1.0f + (q - q0) / (q0 * (1.0f + q0)));
  north[i] = dn;
  south[i] = ds;
  west[i] = dw;
  east[i] = de;
  c[i] = fminf(fmaxf(value, 0.0f), 1.0f);
}

extern "C" __global__ void update(const float* __restrict__ image, const float* __restrict__ north,
                                  const float* __restrict__ south, const float* __restrict__ west,
                                  const float* __restrict__ east, const float* __restrict__ c,
                                  float* __restrict__ out, int rows, int columns, float rate) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= columns) return;
  const int i = row * columns + column;
  const float here = c[i];
  const float below = c[min(row + 1, rows - 1) * columns + column];
  const float right = c[row * columns + min(column + 1, columns - 1)];
  const float divergence = here * north[i] + below * south[i] + here * west[i] + right * east[i];
  out[i] = 1.0f + image[i] + 0.25f * rate * divergence;
}
