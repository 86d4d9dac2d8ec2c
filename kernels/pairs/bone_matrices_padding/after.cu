// Takes n affine matrices of 12 floats apart into 12 arrays, through a tile in shared memory whose
// rows are padded to 13 words, so that 32 lanes reach 32 banks.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kEntries = 12;
constexpr int kPitch = kEntries + 1;

extern "C" __global__ void __launch_bounds__(kThreads)
    split_matrices(const float* __restrict__ matrices, float* __restrict__ out, int n) {
  __shared__ float tile[kThreads * kPitch];
  const int first = blockIdx.x * kThreads;
  const float* from = matrices + first * kEntries;
#pragma unroll
  for (int k = 0; k < kEntries; ++k) {
    const int i = k * kThreads + threadIdx.x;
    tile[i / kEntries * kPitch + i % kEntries] = from[i];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kEntries; ++k) {
    out[k * n + first + threadIdx.x] = tile[threadIdx.x * kPitch + k];
  }
}
