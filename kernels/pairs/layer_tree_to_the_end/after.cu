// A layer of a neural network for one input: each block takes a row of the weights, multiplies it
// by the input and sums the products. Each warp adds its own by shuffles, and the first warp the
// sums of the eight.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    layer(const float* __restrict__ weights, const float* __restrict__ input,
          float* __restrict__ out, int columns) {
  __shared__ float sums[kThreads / 32];
  const float* row = weights + static_cast<size_t>(blockIdx.x) * columns;
  float sum = 0.0f;
#pragma unroll 2
  for (int i = threadIdx.x; i < columns; i += kThreads) sum += row[i] * input[i];
#pragma unroll
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = sums[threadIdx.x % (kThreads / 32)];
#pragma unroll
    for (int half = kThreads / 64; half > 0; half /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, half);
    }
    if (threadIdx.x == 0) out[blockIdx.x] = 1.0f / (1.0f + __expf(-sum));
  }
}
