// The power of each channel's frames at 128 frequencies, by Goertzel's recursion: a block for each
// channel, a thread for each frequency. What is wrong: the term of the sample before last, which is
// known early, is added last, so that two operations wait for the last one in place of one.
//
// Architectures: sm_80, sm_90a.

constexpr int kFrame = 256;
constexpr int kThreads = 128;

extern "C" __global__ void __launch_bounds__(kThreads)
    powers(const float* __restrict__ signal, const float* __restrict__ coefficients,
           float* __restrict__ out, int frames) {
  __shared__ float samples[kFrame];
  const float coefficient = coefficients[threadIdx.x];
  signal += blockIdx.x * frames * kFrame;
  out += blockIdx.x * frames * kThreads;
  for (int frame = 0; frame < frames; ++frame) {
    for (int i = threadIdx.x; i < kFrame; i += kThreads) samples[i] = signal[frame * kFrame + i];
    __syncthreads();
    float last = 0.0f;
    float before = 0.0f;
#pragma unroll 8
    for (int i = 0; i < kFrame; ++i) {
      const float next = samples[i] + coefficient * last - before;
      before = last;
      last = next;
    }
    out[frame * kThreads + threadIdx.x] =
        last * last + before * before - coefficient * last * before;
    __syncthreads();
  }
}
