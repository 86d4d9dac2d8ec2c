// Reads uint4, 16 bytes each, past L1 (ld.global.cg): a block its own `slice` of them, `repeats`
// times over. A launch reads gridDim.x * slice * repeats * 16 bytes, and writes one sum a thread of
// all words that it read, modulo 2^32. `slice` is a multiple of kTile.
//
// A grid whose slices fit into L2 together reads L2 from the second time on; slices that are far
// larger, read once, come from DRAM.

constexpr int kThreads = 512;
constexpr int kEach = 4;  // uint4 of a thread at a time
constexpr int kTile = kThreads * kEach;

extern "C" __global__ void __launch_bounds__(kThreads, 4)
    read(const uint4* __restrict__ from, unsigned* __restrict__ sums, int slice, int repeats) {
  const uint4* mine = from + static_cast<long long>(blockIdx.x) * slice + threadIdx.x;
  unsigned sum = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (int tile = 0; tile < slice; tile += kTile) {
      uint4 held[kEach];
#pragma unroll
      for (int j = 0; j < kEach; ++j) held[j] = __ldcg(mine + tile + j * kThreads);
#pragma unroll
      for (int j = 0; j < kEach; ++j) sum += held[j].x + held[j].y + held[j].z + held[j].w;
    }
  }
  sums[blockIdx.x * kThreads + threadIdx.x] = sum;
}
