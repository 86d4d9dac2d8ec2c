// The best score of each quantized vector over 128 queries; vectors have 64 values of one byte.
// __dp4a multiplies four bytes with four others and adds the products.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kWords = 16;  // of a vector, four bytes each
constexpr int kQueries = 128;

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
    for (int k = 0; k < kWords; ++k) sum = __dp4a(code[k], query[q][k], sum);
    best = max(best, sum);
  }
  out[vector] = best;
}
