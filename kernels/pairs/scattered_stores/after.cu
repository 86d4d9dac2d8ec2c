// Unpacks the bits of words to floats, 1 and -1; n is a multiple of 32. A warp takes its 32 words
// one after the other and a lane writes one bit of each, so that a store fills a line.
//
// Architectures: sm_80, sm_90a.

extern "C" __global__ void unpack(const unsigned* __restrict__ words, float* __restrict__ out,
                                  int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned word = words[i];
  const int lane = threadIdx.x % 32;
  float* target = out + static_cast<long long>(i - lane) * 32;
#pragma unroll
  for (int j = 0; j < 32; ++j) {
    target[j * 32 + lane] = (__shfl_sync(~0u, word, j) >> lane & 1) != 0 ? 1.0f : -1.0f;
  }
}
