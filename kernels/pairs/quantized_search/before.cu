// The best score of each quantized vector over 128 queries; vectors have 64 values of one byte.
// What is wrong: bytes are taken out of their words by shifts and conversions and multiplied one at
// a time, and the pipes for integers are full.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kWords = 16;  // of a vector, four bytes each
constexpr int kQueries = 128;

// The sum and the products of the four bytes of two words.
__device__ __forceinline__ int add_products(int a, int b, int sum) {
#pragma unroll
  for (int shift = 0; shift < 32; shift += 8) {
    sum += static_cast<signed char>(a >> shift) * static_cast<signed char>(b >> shift);
  }
  return sum;
}

// `codes` has word k of all vectors together.
extern "C" __global__ void __launch_bounds__(kThreads)
    best_scores(const int* __restrict__ codes, const int* __restrict__ queries,
                float* __restrict__ out, int vectors) {
  __shared__ __align__(16) int query[kQueries][kWords];
  for (int i = threadIdx.x; i < kQueries * kWords; i += kThreads) {
    query[i / kWords][i % kWords] = queries[i];
  }
  __syncthreads();
  const int vector = blockIdx.x * kThreads + threadIdx.x;
  if (vector >= vectors) return;
  int code[kWords];
#pragma unroll
  for (int k = 0; k < kWords; ++k) code[k] = codes[k * vectors + vector];
  int best = -0x7fffffff;
#pragma unroll 1
  for (int q = 0; q < kQueries; ++q) {
    int sum = 0;
#pragma unroll
    for (int k = 0; k < kWords; ++k) sum = add_products(code[k], query[q][k], sum);
    best = max(best, sum);
  }
  out[vector] = best;
}
