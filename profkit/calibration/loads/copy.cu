// Copies `count` float4, 16 bytes each: reads and writes count * 16 bytes. A block takes kEach times
// its threads at a time, with all loads before the stores.

constexpr int kThreads = 256;
constexpr int kEach = 4;  // float4 of a thread at a time
constexpr int kTile = kThreads * kEach;

extern "C" __global__ void __launch_bounds__(kThreads, 8)
    copy(const float4* __restrict__ from, float4* __restrict__ to, int count) {
  for (int tile = blockIdx.x * kTile; tile < count; tile += gridDim.x * kTile) {
    float4 held[kEach];
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int i = tile + j * kThreads + threadIdx.x;
      if (i < count) held[j] = from[i];
    }
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int i = tile + j * kThreads + threadIdx.x;
      if (i < count) to[i] = held[j];
    }
  }
}
