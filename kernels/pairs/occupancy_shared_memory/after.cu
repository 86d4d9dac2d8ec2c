// Weighs each element with its four neighbours on either side; out of bounds counts as zero. A
// block stages a segment and its neighbours in shared memory, in an array of just their number, so
// that every warp slot of an SM can be filled.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kReach = 4;
constexpr int kStaged = kThreads + 2 * kReach;

extern "C" __global__ void __launch_bounds__(kThreads)
    filter(const float* __restrict__ x, float* __restrict__ out, int n) {
  __shared__ float staged[kStaged];

  for (int first = blockIdx.x * kThreads; first < n; first += gridDim.x * kThreads) {
    const int at = first + threadIdx.x - kReach;
    staged[threadIdx.x] = at >= 0 && at < n ? x[at] : 0.0f;
    if (threadIdx.x < 2 * kReach) {
      const int last = at + kThreads;
      staged[threadIdx.x + kThreads] = last < n ? x[last] : 0.0f;
    }
    __syncthreads();

    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j <= 2 * kReach; ++j) {
      sum += staged[threadIdx.x + j] * (kReach + 1 - abs(j - kReach));
    }
    if (first + threadIdx.x < n) out[first + threadIdx.x] = sum;
    __syncthreads();  // before the next segment takes its place
  }
}
