// A filter before alignment: the fewest mismatches of a read of 128 bases with its window of the
// genome, over a number of shifts. A base takes two bits, and a thread has a read.
// A word's 16 bases are compared at once: the mismatching ones leave a bit each.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kWords = 8;  // of a read
constexpr int kWindow = kWords + 2;
constexpr int kBases = 16;  // in a word

extern "C" __global__ void __launch_bounds__(kThreads)
    filter(const int* __restrict__ reads, const int* __restrict__ windows,
           float* __restrict__ out, int n, int shifts) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  unsigned read[kWords], window[kWindow];
#pragma unroll
  for (int w = 0; w < kWords; ++w) read[w] = reads[w * n + i];
#pragma unroll
  for (int w = 0; w < kWindow; ++w) window[w] = windows[w * n + i];

  int fewest = kWords * kBases;
#pragma unroll 1
  for (int shift = 0; shift < shifts; ++shift) {
    if (shift == kBases) {  // from here on a word further
#pragma unroll
      for (int w = 0; w + 1 < kWindow; ++w) window[w] = window[w + 1];
    }
    int mismatches = 0;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const unsigned aligned = __funnelshift_r(window[w], window[w + 1], 2 * (shift % kBases));
      const unsigned differing = read[w] ^ aligned;
      mismatches += __popc((differing | differing >> 1) & 0x55555555u);
    }
    fewest = min(fewest, mismatches);
  }
  out[i] = static_cast<float>(fewest);
}
