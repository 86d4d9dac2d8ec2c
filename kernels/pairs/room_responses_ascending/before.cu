// Convolves one signal with the impulse responses of many listener positions, a block for each. The
// responses are sorted by length. What is wrong: the blocks start with the shortest response, so
// the longest ones start last and run on while finished blocks leave room on the SMs.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kEach = 4;
constexpr int kSamples = kThreads * kEach;

// signal[longest + t] is the sample at time t; those before it are the past.
extern "C" __global__ void __launch_bounds__(kThreads)
    responses(const float* __restrict__ signal, const float* __restrict__ response,
              const int* __restrict__ lengths, float* __restrict__ out, int longest) {
  const int position = blockIdx.x;
  const int length = lengths[position];
  const float* taps = response + position * longest;
  const float* recent = signal + longest + threadIdx.x;
  float sums[kEach] = {};
#pragma unroll 4
  for (int k = 0; k < length; ++k) {
    const float tap = taps[k];
#pragma unroll
    for (int i = 0; i < kEach; ++i) sums[i] += tap * recent[i * kThreads - k];
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    out[position * kSamples + i * kThreads + threadIdx.x] = sums[i];
  }
}
