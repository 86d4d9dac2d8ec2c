// Normalization of speech features to mean 0 and variance 1 along time: a block takes one feature
// of one utterance and keeps its frames in shared memory, so that they are read once. The
// buffer has room for as many frames as there are.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;

// The sum over the block, for all threads.
__device__ __forceinline__ float block_sum(float value, float* sums) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, lanes);
  }
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  return sums[0] + sums[1] + sums[2] + sums[3];
}

extern "C" __global__ void __launch_bounds__(kThreads)
    normalize(const float* __restrict__ x, float* __restrict__ out, int frames) {
  extern __shared__ float buffer[];
  float* sums = buffer + frames;
  x += static_cast<size_t>(blockIdx.x) * frames;
  out += static_cast<size_t>(blockIdx.x) * frames;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < frames; i += kThreads) {
    buffer[i] = x[i];
    sum += buffer[i];
  }
  const float mean = block_sum(sum, sums) / frames;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < frames; i += kThreads) {
    squares += (buffer[i] - mean) * (buffer[i] - mean);
  }
  const float scale = rsqrtf(block_sum(squares, sums + 4) / frames + 1e-5f);
  for (int i = threadIdx.x; i < frames; i += kThreads) out[i] = (buffer[i] - mean) * scale;
}
