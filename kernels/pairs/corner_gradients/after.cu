// The corner measure of an image, in two kernels: the gradients of all pixels, then, for each
// pixel, the determinant and trace of the products of gradients over a window of 3 by 3. Gradients
// go from one kernel to the other in half precision.
//
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

constexpr int kWidth = 32;
constexpr int kHeight = 8;
constexpr int kEach = 4;  // rows of a thread
constexpr int kIndent = 16;  // columns of margin

// Gradient row y belongs to row y + 1 of the image.
extern "C" __global__ void __launch_bounds__(kWidth* kHeight)
    gradients(const float* __restrict__ image, __half2* __restrict__ out, int rows, int pitch) {
  const int x = blockIdx.x * kWidth + threadIdx.x;
  const int first = (blockIdx.y * kHeight + threadIdx.y) * kEach;
  if (x == 0 || x == pitch - 1) return;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int y = first + k;
    if (y >= rows) return;
    const float* p = image + (y + 1) * pitch + x;
    const float dx = 0.5f * (p[1] - p[-1]);
    const float dy = 0.5f * (p[pitch] - p[-pitch]);
    out[y * pitch + x] = __floats2half2_rn(dx, dy);
  }
}

extern "C" __global__ void __launch_bounds__(kWidth* kHeight)
    corners(const __half2* __restrict__ gradients, __half* __restrict__ out, int columns, int pitch,
            float weight) {
  const int x = blockIdx.x * kWidth + threadIdx.x;
  const int y = (blockIdx.y * kHeight + threadIdx.y) * kEach;
  float xx[3], xy[3], yy[3];
#pragma unroll
  for (int row = 0; row < kEach + 2; ++row) {
    const __half2* g = gradients + (y + row) * pitch + x + kIndent;
    const float2 left = __half22float2(g[-1]);
    const float2 center = __half22float2(g[0]);
    const float2 right = __half22float2(g[1]);
    xx[row % 3] = left.x * left.x + center.x * center.x + right.x * right.x;
    xy[row % 3] = left.x * left.y + center.x * center.y + right.x * right.y;
    yy[row % 3] = left.y * left.y + center.y * center.y + right.y * right.y;
    if (row >= 2) {
      const float a = xx[0] + xx[1] + xx[2];
      const float b = xy[0] + xy[1] + xy[2];
      const float c = yy[0] + yy[1] + yy[2];
      out[(y + row - 2) * columns + x] = __float2half(a * c - b * b - weight * (a + c) * (a + c));
    }
  }
}
