// Frames of video in NV12 to planar RGB in half precision, a thread for each pixel: a plane of luma
// at full size, and one of chroma pairs at half size. What is wrong: row and column come from
// a flat index by an integer division, in each thread.
//
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

extern "C" __global__ void nv12_to_rgb(const unsigned char* __restrict__ luma,
                                       const uchar2* __restrict__ chroma, __half* __restrict__ out,
                                       int frames, int rows, int columns) {
  const int pixels = rows * columns;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = i / columns;
  const int column = i % columns;
  const int frame = blockIdx.y;
  if (frame >= frames || row >= rows) return;

  const float y = 1.164384f * (luma[frame * pixels + row * columns + column] - 16.0f);
  const uchar2 uv = chroma[frame * (pixels / 4) + row / 2 * (columns / 2) + column / 2];
  const float u = uv.x - 128.0f;
  const float v = uv.y - 128.0f;
  const float scale = 1.0f / 255.0f;
  const float r = __saturatef(scale * (y + 1.596027f * v));
  const float g = __saturatef(scale * (y - 0.391762f * u - 0.812968f * v));
  const float b = __saturatef(scale * (y + 2.017232f * u));

  __half* to = out + static_cast<size_t>(3) * frame * pixels + row * columns + column;
  to[0] = __float2half_rn(r);
  to[pixels] = __float2half_rn(g);
  to[2 * pixels] = __float2half_rn(b);
}
