// Softmax of each row, a block a row; columns are a multiple of four. What is wrong: the maximum,
// the sum and the result are three passes over the row, and the rows in flight are together larger
// than L2, so that each pass reads from DRAM.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

__device__ __forceinline__ float highest(float4 v) {
  return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
}

__device__ __forceinline__ float total(float4 v) { return (v.x + v.y) + (v.z + v.w); }

__device__ __forceinline__ float4 exponentials(float4 v, float shift) {
  return make_float4(expf(v.x - shift), expf(v.y - shift), expf(v.z - shift), expf(v.w - shift));
}

__device__ __forceinline__ float4 scaled(float4 v, float by) {
  return make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
}

__device__ __forceinline__ float block_max(float value) {
  __shared__ float of_warp[kWarps];
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, offset));
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp) value = fmaxf(value, of_warp[warp]);
  return value;
}

__device__ __forceinline__ float block_sum(float value) {
  __shared__ float of_warp[kWarps];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < kWarps; ++warp) sum += of_warp[warp];
  return sum;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    softmax(const float* __restrict__ x, float* __restrict__ out, int columns) {
  const long long offset = static_cast<long long>(blockIdx.x) * columns;
  const float4* source = reinterpret_cast<const float4*>(x + offset);
  float4* target = reinterpret_cast<float4*>(out + offset);
  const int vectors = columns / 4;

  float largest = -3.4e38f;
#pragma unroll 4
  for (int i = threadIdx.x; i < vectors; i += kThreads) {
    largest = fmaxf(largest, highest(source[i]));
  }
  largest = block_max(largest);

  float sum = 0.0f;
#pragma unroll 4
  for (int i = threadIdx.x; i < vectors; i += kThreads) {
    sum += total(exponentials(source[i], largest));
  }
  const float share = 1.0f / block_sum(sum);

#pragma unroll 4
  for (int i = threadIdx.x; i < vectors; i += kThreads) {
    target[i] = scaled(exponentials(source[i], largest), share);
  }
}
