// Colors from a camera's Bayer pattern (red and green in even rows, green and blue in odd ones) by
// the linear filters of Malvar, He and Cutler, to planes in half precision; a thread for each
// pixel. What is wrong: neighboring pixels need different filters, so each warp goes through two
// branches with half of its lanes.
//
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

struct Window {
  float center, row, column, corners, far_row, far_column;
};

__device__ __forceinline__ int mirrored(int i, int size) {
  return i < 0 ? -i : (i < size ? i : 2 * size - 2 - i);
}

__device__ __forceinline__ Window window(const float* __restrict__ raw, int x, int y, int rows,
                                         int columns) {
  const float* lines[5];
  int at[5];
#pragma unroll
  for (int i = 0; i < 5; ++i) {
    lines[i] = raw + mirrored(y + i - 2, rows) * columns;
    at[i] = mirrored(x + i - 2, columns);
  }
  Window w;
  w.center = lines[2][at[2]];
  w.row = lines[2][at[1]] + lines[2][at[3]];
  w.column = lines[1][at[2]] + lines[3][at[2]];
  w.corners = lines[1][at[1]] + lines[1][at[3]] + lines[3][at[1]] + lines[3][at[3]];
  w.far_row = lines[2][at[0]] + lines[2][at[4]];
  w.far_column = lines[0][at[2]] + lines[4][at[2]];
  return w;
}

__device__ __forceinline__ float3 color(const Window& w, bool odd_row, bool odd_column) {
  if (odd_row == odd_column) {  // red or blue
    const float far = w.far_row + w.far_column;
    const float green = 0.5f * w.center + 0.25f * (w.row + w.column) - 0.125f * far;
    const float other = 0.75f * w.center + 0.25f * w.corners - 0.1875f * far;
    return odd_row ? make_float3(other, green, w.center) : make_float3(w.center, green, other);
  }
  const float common = 0.625f * w.center - 0.125f * w.corners;
  const float along = common + 0.5f * w.row - 0.125f * w.far_row + 0.0625f * w.far_column;
  const float across = common + 0.5f * w.column - 0.125f * w.far_column + 0.0625f * w.far_row;
  return odd_row ? make_float3(across, w.center, along) : make_float3(along, w.center, across);
}

extern "C" __global__ void demosaic(const float* __restrict__ raw, __half* __restrict__ out,
                                    int rows, int columns) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (y >= rows || x >= columns) return;
  const float3 c = color(window(raw, x, y, rows, columns), y % 2, x % 2);
  __half* to = out + y * columns + x;
  to[0] = __float2half_rn(c.x);
  to[rows * columns] = __float2half_rn(c.y);
  to[2 * rows * columns] = __float2half_rn(c.z);
}
