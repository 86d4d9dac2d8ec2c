// A depthwise convolution with a kernel of 11 by 11 over padded images, tile by tile in shared
// memory. A thread computes eight outputs of a column, and each value it loads serves up to eight
// of them.
//
// Architectures: sm_80, sm_90a.

constexpr int kSize = 11;
constexpr int kWidth = 32;
constexpr int kHeight = 8;
constexpr int kEach = 8;
constexpr int kTileRows = kHeight * kEach + kSize - 1;
constexpr int kTileColumns = kWidth + kSize - 1;

extern "C" __global__ void __launch_bounds__(kWidth* kHeight)
    convolve(const float* __restrict__ images, const float* __restrict__ kernels,
             float* __restrict__ out, int padded_rows, int pitch) {
  __shared__ float tile[kTileRows][kTileColumns];
  __shared__ __align__(16) float weights[kSize][12];  // a column of the kernel in each row
  const int channel = blockIdx.z;
  const int first_x = blockIdx.x * kWidth;
  const int first_y = blockIdx.y * kHeight * kEach;
  const float* image = images + (channel * padded_rows + first_y) * pitch + first_x;
  const int thread = threadIdx.y * kWidth + threadIdx.x;
  for (int i = thread; i < kTileRows * kTileColumns; i += kWidth * kHeight) {
    tile[i / kTileColumns][i % kTileColumns] = image[i / kTileColumns * pitch + i % kTileColumns];
  }
  if (thread < kSize * kSize) {
    weights[thread % kSize][thread / kSize] = kernels[channel * kSize * kSize + thread];
  }
  __syncthreads();

  float sums[kEach] = {};
#pragma unroll 1
  for (int dx = 0; dx < kSize; ++dx) {
    float weight[kSize];
#pragma unroll
    for (int dy = 0; dy < kSize; ++dy) weight[dy] = weights[dx][dy];
#pragma unroll
    for (int row = 0; row < kEach + kSize - 1; ++row) {
      const float value = tile[threadIdx.y * kEach + row][threadIdx.x + dx];
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        const int dy = row - k;
        if (dy >= 0 && dy < kSize) sums[k] += weight[dy] * value;
      }
    }
  }
  const int columns = gridDim.x * kWidth;
  const int rows = gridDim.y * kHeight * kEach;
  float* to = out + (channel * rows + first_y + threadIdx.y * kEach) * columns + first_x;
#pragma unroll
  for (int k = 0; k < kEach; ++k) to[k * columns + threadIdx.x] = sums[k];
}
