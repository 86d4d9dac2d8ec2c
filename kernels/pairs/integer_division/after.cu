// A direct convolution with one output channel, a thread an output. The loops nest as the taps do,
// and the addresses move on by additions.
// Architectures: sm_80, sm_90a.

constexpr int kWidth = 32;
constexpr int kHeight = 4;

// The image has `window` - 1 more rows and columns than the output.
extern "C" __global__ void __launch_bounds__(kWidth * kHeight)
    convolve(const float* __restrict__ image, const float* __restrict__ weights,
             float* __restrict__ out, int channels, int height, int width, int window) {
  const int x = blockIdx.x * kWidth + threadIdx.x;
  const int y = blockIdx.y * kHeight + threadIdx.y;
  if (x >= width || y >= height) return;
  const int image_height = height + window - 1;
  const int image_width = width + window - 1;
  const float* weight = weights;
  const float* plane = image + y * image_width + x;
  float sum = 0.0f;
  for (int channel = 0; channel < channels; ++channel) {
    const float* line = plane;
    for (int row = 0; row < window; ++row) {
#pragma unroll 8
      for (int column = 0; column < window; ++column) sum += weight[column] * line[column];
      weight += window;
      line += image_width;
    }
    plane += image_height * image_width;
  }
  out[y * width + x] = sum;
}
