// Takes n affine matrices of 12 floats apart into 12 arrays, through a tile in shared memory. A
// warp that reads one entry of 32 matrices is 12 words apart, so four lanes meet in each bank. DRAM
// is the limit all the same: the conflicts take less than half of the time that the tile takes to
// come.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kEntries = 12;
constexpr int kPitch = kEntries;

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
