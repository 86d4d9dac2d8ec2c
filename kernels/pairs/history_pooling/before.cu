// The mean embedding of each user's items, a warp for each user: the warp stages the user's items
// in shared memory and adds up their rows of 32 floats.
// What is wrong: a warp has room for the longest history that there may be, 16 KiB, so that shared
// memory is full with 12 warps on an SM.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kStaged = 4096;

extern "C" __global__ void __launch_bounds__(kThreads)
    pool(const float* __restrict__ table, const int* __restrict__ items, float* __restrict__ out,
         int length) {
  extern __shared__ int staged[];
  const int lane = threadIdx.x % 32;
  const int user = blockIdx.x * kWarps + threadIdx.x / 32;
  int* mine = staged + threadIdx.x / 32 * kStaged;

  float sum = 0.0f;
  for (int first = 0; first < length; first += kStaged) {
    const int count = min(kStaged, length - first);
    for (int i = lane; i < count; i += 32) mine[i] = items[user * length + first + i];
    __syncwarp();
#pragma unroll 2
    for (int i = 0; i < count; ++i) sum += table[mine[i] * 32 + lane];
    __syncwarp();
  }
  out[user * 32 + lane] = sum / length;
}
