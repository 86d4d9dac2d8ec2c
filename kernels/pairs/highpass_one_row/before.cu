// Sharpens an image by what a 5 by 5 binomial filter takes away; the input has a border of two
// pixels. What is wrong: a thread has one pixel, and loads 25 values for it that the threads of the
// neighboring rows load again.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kTaps = 5;

__device__ constexpr float kWeights[kTaps] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};

extern "C" __global__ void __launch_bounds__(kThreads)
    sharpen(const float* __restrict__ image, float* __restrict__ out, int columns, float gain) {
  const int pitch = columns + kTaps - 1;
  const int x = blockIdx.x * kThreads + threadIdx.x;
  const int y = blockIdx.y;
  const float* corner = image + y * pitch + x;
  float smooth = 0.0f;
#pragma unroll
  for (int i = 0; i < kTaps; ++i) {
#pragma unroll
    for (int j = 0; j < kTaps; ++j) {
      smooth += kWeights[i] * kWeights[j] * corner[i * pitch + j];
    }
  }
  const float pixel = corner[2 * pitch + 2];
  out[y * columns + x] = pixel + gain * (pixel - smooth);
}
