// The logarithm of the sum of exponentials of each sequence in a padded batch. Sequence b has
// 16 << levels[b] scores. What is wrong: a block takes a whole sequence, so that the few long
// sequences run on when all others have ended.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

extern "C" __global__ void __launch_bounds__(kThreads)
    logsumexp(const float* __restrict__ scores, const int* __restrict__ levels,
              float* __restrict__ out, int longest) {
  __shared__ float sums[kWarps];
  const int sequence = blockIdx.x;
  const int length = 16 << levels[sequence];
  const float* row = scores + static_cast<size_t>(sequence) * longest;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < length; i += kThreads) sum += __expf(row[i]);
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  float total = 0.0f;
  for (int warp = 0; warp < kWarps; ++warp) total += sums[warp];
  out[sequence] = logf(total);
}
