// A depthwise convolution of 3 by 3 with zero padding, for images stored channel by channel (NCHW).
// Consecutive threads take consecutive pixels of a row, and a block is some rows of one channel.
//
// Architectures: sm_80, sm_90a.

extern "C" __global__ void depthwise(const float* __restrict__ x,
                                     const float* __restrict__ weights, float* __restrict__ out,
                                     int height, int width) {
  const int channels = gridDim.y;
  const int channel = blockIdx.y;
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  const int column = threadIdx.x;
  if (row >= height) return;
  const int image = blockIdx.z * channels + channel;
  const float* plane = x + image * height * width;
  float sum = 0.0f;
#pragma unroll
  for (int dy = -1; dy <= 1; ++dy) {
#pragma unroll
    for (int dx = -1; dx <= 1; ++dx) {
      const bool inside =
          row + dy >= 0 && row + dy < height && column + dx >= 0 && column + dx < width;
      const float value = inside ? plane[(row + dy) * width + column + dx] : 0.0f;
      sum += weights[channel * 9 + (dy + 1) * 3 + dx + 1] * value;
    }
  }
  out[image * height * width + row * width + column] = sum;
}
