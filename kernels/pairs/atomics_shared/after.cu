// A histogram of 16 bins, weighted by the four lowest bits; three quarters of the values fall into
// the first bin. out starts at zero. Each thread has a histogram of its own in shared memory, in a
// bank that no other lane of its warp uses; they are summed at the end.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kBins = 16;

__device__ __forceinline__ int bin_of(int value) { return max(0, value - 49152) / 1024; }

extern "C" __global__ void __launch_bounds__(kThreads)
    histogram(const int* __restrict__ values, float* __restrict__ out, int n, int part) {
  __shared__ int bins[kBins][kThreads];
#pragma unroll
  for (int bin = 0; bin < kBins; ++bin) bins[bin][threadIdx.x] = 0;

  const int begin = blockIdx.x * part;
  const int end = min(n, begin + part);
#pragma unroll 8
  for (int i = begin + threadIdx.x; i < end; i += kThreads) {
    const int value = values[i];
    bins[bin_of(value)][threadIdx.x] += value & 15;
  }
  __syncthreads();

  const int lane = threadIdx.x % 32;
  for (int bin = threadIdx.x / 32; bin < kBins; bin += kThreads / 32) {
    int sum = 0;
#pragma unroll
    for (int i = 0; i < kThreads; i += 32) sum += bins[bin][i + lane];
#pragma unroll
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (lane == 0) atomicAdd(out + bin, static_cast<float>(sum));
  }
}
