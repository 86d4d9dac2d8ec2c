// Sharpens an image by what a 5 by 5 binomial filter takes away; the input has a border of two
// pixels. A thread has two pixels, one below the other, and loads the 30 values of both once.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kTaps = 5;
constexpr int kRows = 2;  // of pixels a thread

__device__ constexpr float kWeights[kTaps] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};

extern "C" __global__ void __launch_bounds__(kThreads)
    sharpen(const float* __restrict__ image, float* __restrict__ out, int columns, float gain) {
  const int pitch = columns + kTaps - 1;
  const int x = blockIdx.x * kThreads + threadIdx.x;
  const int y = blockIdx.y * kRows;
  const float* corner = image + y * pitch + x;
  float smooth[kRows] = {};
  float pixel[kRows];
#pragma unroll
  for (int i = 0; i < kTaps + kRows - 1; ++i) {
#pragma unroll
    for (int j = 0; j < kTaps; ++j) {
      const float value = corner[i * pitch + j];
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        if (i < row || i - row >= kTaps) continue;
        smooth[row] += kWeights[i - row] * kWeights[j] * value;
        if (i - row == 2 && j == 2) pixel[row] = value;
      }
    }
  }
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    out[(y + row) * columns + x] = pixel[row] + gain * (pixel[row] - smooth[row]);
  }
}
