// Averages each pixel over seven successive frames. What is wrong: blocks go frame by frame, and by
// the time the next frame's average wants the six frames that it shares with this one, 400 MB have
// gone through L2: each frame comes from DRAM up to seven times.
//
// Architectures: sm_80, sm_90a.

constexpr int kFrames = 7;  // of an average

extern "C" __global__ void average(const float* __restrict__ x, float* __restrict__ out,
                                   int pixels) {
  const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  const int frame = blockIdx.y;
  if (pixel >= pixels) return;
  const long long at = static_cast<long long>(frame) * pixels + pixel;
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kFrames; ++k) {
    sum += x[at + static_cast<long long>(k) * pixels];
  }
  out[at] = sum * (1.0f / kFrames);
}
