// The cosine transform of an image in blocks of 8 by 8 pixels, as JPEG's encoders do it: a thread
// transforms a row of a block, and then a column. What is wrong: the blocks lie in shared memory
// 64 words apart, so that the four columns' threads of a warp read the same eight banks.
//
// Architectures: sm_80, sm_90a.

#include <cuda_fp16.h>

constexpr int kSide = 8;
constexpr int kBlocks = 32;  // of 8 by 8 pixels
constexpr int kThreads = kSide * kBlocks;
constexpr int kPitch = kSide;

__constant__ float cosines[kSide][kSide / 2] = {
    {0.35355339f, 0.35355339f, 0.35355339f, 0.35355339f},
    {0.49039264f, 0.41573481f, 0.27778512f, 0.09754516f},
    {0.46193977f, 0.19134172f, -0.19134172f, -0.46193977f},
    {0.41573481f, -0.09754516f, -0.49039264f, -0.27778512f},
    {0.35355339f, -0.35355339f, -0.35355339f, 0.35355339f},
    {0.27778512f, -0.49039264f, 0.09754516f, 0.41573481f},
    {0.19134172f, -0.46193977f, 0.46193977f, -0.19134172f},
    {0.09754516f, -0.27778512f, 0.41573481f, -0.49039264f}};

__device__ __forceinline__ void transform(float (&v)[kSide]) {
  float sums[kSide / 2], differences[kSide / 2];
#pragma unroll
  for (int i = 0; i < kSide / 2; ++i) {
    sums[i] = v[i] + v[kSide - 1 - i];
    differences[i] = v[i] - v[kSide - 1 - i];
  }
#pragma unroll
  for (int k = 0; k < kSide; ++k) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kSide / 2; ++i) {
      sum += cosines[k][i] * (k % 2 == 0 ? sums[i] : differences[i]);
    }
    v[k] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    cosine_transform(const uchar4* __restrict__ image, __half* __restrict__ out, int columns) {
  __shared__ float tile[kBlocks][kSide][kPitch];
  const int block = threadIdx.x / kSide;
  const int line = threadIdx.x % kSide;
  const int row = blockIdx.y * kSide;
  const int column = blockIdx.x * kThreads;

  const uchar4* source = image + ((row + line) * columns + column + block * kSide) / 4;
  const uchar4 low = source[0];
  const uchar4 high = source[1];
  float v[kSide] = {low.x - 128.0f,  low.y - 128.0f,  low.z - 128.0f,  low.w - 128.0f,
                    high.x - 128.0f, high.y - 128.0f, high.z - 128.0f, high.w - 128.0f};
  transform(v);
#pragma unroll
  for (int i = 0; i < kSide; ++i) tile[block][line][i] = v[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kSide; ++i) v[i] = tile[block][i][line];
  transform(v);
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    out[(row + i) * columns + column + threadIdx.x] = __float2half_rn(v[i]);
  }
}
