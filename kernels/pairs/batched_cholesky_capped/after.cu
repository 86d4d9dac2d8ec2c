// Cholesky factors of many 8 by 8 matrices, a thread for each; element e of all matrices is one row
// of the batch. The launch bounds ask for six blocks of 256 threads an SM, which caps the registers.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kSize = 8;

extern "C" __global__ void __launch_bounds__(kThreads, 6)
    cholesky(const float* __restrict__ matrices, float* __restrict__ factors, int count) {
  const int matrix = blockIdx.x * kThreads + threadIdx.x;
  float l[kSize][kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
#pragma unroll
    for (int j = 0; j <= i; ++j) l[i][j] = matrices[(i * (i + 1) / 2 + j) * count + matrix];
    l[i][i] += kSize;
  }
#pragma unroll
  for (int j = 0; j < kSize; ++j) {
    const float inverse = rsqrtf(l[j][j]);
    l[j][j] *= inverse;
#pragma unroll
    for (int i = j + 1; i < kSize; ++i) l[i][j] *= inverse;
#pragma unroll
    for (int k = j + 1; k < kSize; ++k) {
#pragma unroll
      for (int i = k; i < kSize; ++i) l[i][k] -= l[i][j] * l[k][j];
    }
  }
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
#pragma unroll
    for (int j = 0; j <= i; ++j) factors[(i * (i + 1) / 2 + j) * count + matrix] = l[i][j];
  }
}
