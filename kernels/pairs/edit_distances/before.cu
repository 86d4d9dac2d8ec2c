// Edit distances of reads to one target of 240 bases, a thread for each read, which has a row of
// the table in shared memory.
// What is wrong: distances are at most 240, but stored as 32-bit integers, and one block of four
// warps fills an SM's shared memory.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kTarget = 240;

using Distance = int;

extern "C" __global__ void __launch_bounds__(kThreads)
    distances(const unsigned char* __restrict__ reads, const unsigned char* __restrict__ target,
              float* __restrict__ out, int n, int length) {
  extern __shared__ Distance table[];
  __shared__ uchar4 bases[kTarget / 4];
  Distance* row = table + threadIdx.x;  // a column each
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (threadIdx.x < kTarget / 4) {
    bases[threadIdx.x] = reinterpret_cast<const uchar4*>(target)[threadIdx.x];
  }
  for (int j = 0; j < kTarget; ++j) row[j * kThreads] = j + 1;
  __syncthreads();

  int left = 0;
  for (int at = 0; at < length; ++at) {
    const unsigned char base = reads[at * n + i];
    int diagonal = at;
    left = at + 1;
    for (int j = 0; j < kTarget; j += 4) {
      const uchar4 four = bases[j / 4];
      const unsigned char wanted[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int up = row[(j + k) * kThreads];
        left = min(diagonal + (wanted[k] != base), min(up, left) + 1);
        diagonal = up;
        row[(j + k) * kThreads] = left;
      }
    }
  }
  out[i] = static_cast<float>(left);
}
