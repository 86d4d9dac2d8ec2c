// A depthwise convolution with a kernel of 11 by 11 over padded images, tile by tile in shared
// memory. What is wrong: a thread computes a single output, so each of its 121 multiply-adds needs
// a load from shared memory.
//
// Architectures: sm_80, sm_90a.

constexpr int kSize = 11;
constexpr int kWidth = 32;
constexpr int kHeight = 8;
constexpr int kTileRows = kHeight + kSize - 1;
constexpr int kTileColumns = kWidth + kSize - 1;

extern "C" __global__ void __launch_bounds__(kWidth* kHeight)
    convolve(const float* __restrict__ images, const float* __restrict__ kernels,
             float* __restrict__ out, int padded_rows, int pitch) {
  __shared__ float tile[kTileRows][kTileColumns];
  __shared__ float weights[kSize][kSize];
  const int channel = blockIdx.z;
  const int first_x = blockIdx.x * kWidth;
  const int first_y = blockIdx.y * kHeight;
  const float* image = images + (channel * padded_rows + first_y) * pitch + first_x;
  const int thread = threadIdx.y * kWidth + threadIdx.x;
  for (int i = thread; i < kTileRows * kTileColumns; i += kWidth * kHeight) {
    tile[i / kTileColumns][i % kTileColumns] = image[i / kTileColumns * pitch + i % kTileColumns];
  }
  if (thread < kSize * kSize) {
    weights[thread / kSize][thread % kSize] = kernels[channel * kSize * kSize + thread];
  }
  __syncthreads();

  float sum = 0.0f;
#pragma unroll
  for (int dy = 0; dy < kSize; ++dy) {
#pragma unroll
    for (int dx = 0; dx < kSize; ++dx) {
      sum += weights[dy][dx] * tile[threadIdx.y + dy][threadIdx.x + dx];
    }
  }
  const int columns = gridDim.x * kWidth;
  const int rows = gridDim.y * kHeight;
  out[(channel * rows + first_y + threadIdx.y) * columns + first_x + threadIdx.x] = sum;
}
