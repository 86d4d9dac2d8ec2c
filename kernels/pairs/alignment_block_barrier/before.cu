// Scores of local alignments (Smith-Waterman): a warp takes a read of 32 bases and its stretch of
// the genome, each lane a base of the read. The cells of a diagonal are computed together; a lane
// passes its cell on to the next lane through shared memory. What is wrong: the block's warps wait
// for one another on each diagonal, though nothing passes between them.
//
// Architectures: sm_80, sm_90a.

constexpr int kLanes = 32;
constexpr int kWarps = 8;
constexpr int kMatch = 2;
constexpr int kMismatch = -1;
constexpr int kGap = -1;

extern "C" __global__ void __launch_bounds__(kLanes* kWarps)
    align(const unsigned char* __restrict__ reads, const unsigned char* __restrict__ stretches,
          float* __restrict__ out, int length) {
  __shared__ int cells[2][kWarps][kLanes + 1];
  const int lane = threadIdx.x % kLanes;
  const int warp = threadIdx.x / kLanes;
  const int pair = blockIdx.x * kWarps + warp;
  const int base = reads[pair * kLanes + lane];
  const unsigned char* stretch = stretches + static_cast<size_t>(pair) * length;
  for (int i = lane; i <= kLanes; i += kLanes) cells[0][warp][i] = cells[1][warp][i] = 0;
  __syncthreads();

  int cell = 0;
  int diagonal = 0;
  int best = 0;
  for (int step = 0; step < length + kLanes - 1; ++step) {
    const int row = step - lane;
    const int left = cells[step % 2][warp][lane];
    if (row >= 0 && row < length) {
      const int score = stretch[row] == base ? kMatch : kMismatch;
      cell = max(max(0, diagonal + score), max(cell, left) + kGap);
      best = max(best, cell);
    }
    diagonal = left;
    cells[(step + 1) % 2][warp][lane + 1] = cell;
    __syncthreads();  // the next lane reads the cell
  }
#pragma unroll
  for (int other = 16; other > 0; other /= 2) {
    best = max(best, __shfl_xor_sync(0xffffffffu, best, other));
  }
  if (lane == 0) out[pair] = best;
}
