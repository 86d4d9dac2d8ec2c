// A layer of a neural network for one input: each block takes a row of the weights, multiplies it
// by the input and sums the products. What is wrong: the sum is a tree with a barrier for each of
// its eight steps, though the last ones are those of a single warp.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    layer(const float* __restrict__ weights, const float* __restrict__ input,
          float* __restrict__ out, int columns) {
  __shared__ float sums[kThreads];
  const float* row = weights + static_cast<size_t>(blockIdx.x) * columns;
  float sum = 0.0f;
#pragma unroll 2
  for (int i = threadIdx.x; i < columns; i += kThreads) sum += row[i] * input[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = 1.0f / (1.0f + __expf(-sums[0]));
}
