// A direct convolution with one output channel, a thread an output. One loop goes over all taps and
// takes each tap's number apart by divisions whose divisor is known at run time only: they cost
// many times the instructions of the multiply-add.
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
  float sum = 0.0f;
  for (int tap = 0; tap < channels * window * window; ++tap) {
    const int column = tap % window, row = tap / window % window, channel = tap / window / window;
    const int at = (channel * image_height + y + row) * image_width + x + column;
    sum += weights[tap] * image[at];
  }
  out[y * width + x] = sum;
}
