// The logarithm of the sum of exponentials of each sequence in a padded batch. Sequence b has
// 16 << levels[b] scores. A block takes 4096 scores of a sequence, or ends at once if there are
// none, and adds its sum by an atomic; a second kernel takes the logarithms.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kChunk = 4096;

extern "C" __global__ void __launch_bounds__(kThreads)
    sum_chunks(const float* __restrict__ scores, const int* __restrict__ levels,
               float* __restrict__ totals, int longest) {
  const int sequence = blockIdx.y;
  const int length = 16 << levels[sequence];
  const int first = blockIdx.x * kChunk;
  if (first >= length) return;
  const int end = min(first + kChunk, length);
  const float* row = scores + static_cast<size_t>(sequence) * longest;
  float sum = 0.0f;
  for (int i = first + threadIdx.x; i < end; i += kThreads) sum += __expf(row[i]);
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  if (threadIdx.x % 32 == 0) atomicAdd(&totals[sequence], sum);
}

extern "C" __global__ void logarithms(const float* __restrict__ totals, float* __restrict__ out) {
  const int sequence = blockIdx.x * blockDim.x + threadIdx.x;
  out[sequence] = logf(totals[sequence]);
}
