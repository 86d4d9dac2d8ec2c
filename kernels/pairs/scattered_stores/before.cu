// Unpacks the bits of words to floats, 1 and -1; n is a multiple of 32. What is wrong: a thread
// writes the 32 floats of its own word, so the lanes of a warp store 128 bytes apart, and each
// store sends 32 sectors to L2 with 4 bytes in each.
//
// Architectures: sm_80, sm_90a.

extern "C" __global__ void unpack(const unsigned* __restrict__ words, float* __restrict__ out,
                                  int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned word = words[i];
  float* target = out + static_cast<long long>(i) * 32;
#pragma unroll
  for (int j = 0; j < 32; ++j) {
    target[j] = (word >> j & 1) != 0 ? 1.0f : -1.0f;
  }
}
