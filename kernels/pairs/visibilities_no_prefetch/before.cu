// Visibilities of a radio telescope: for each channel, the sum over time of the product of each
// antenna's signal and every other's conjugate. A block takes 64 by 64 antennas, a thread 4 by 4.
// What is wrong: the samples of the next four times are loaded when they are needed, and the block
// waits for them.
//
// Architectures: sm_80, sm_90a.

constexpr int kSide = 16;  // of a block, in threads
constexpr int kEach = 4;   // antennas of a thread, in each direction
constexpr int kTile = kSide * kEach;
constexpr int kTimes = 4;

extern "C" __global__ void __launch_bounds__(kSide* kSide)
    correlate(const float2* __restrict__ signals, float2* __restrict__ out, int antennas,
              int times) {
  __shared__ float2 a[kTimes][kTile];
  __shared__ float2 b[kTimes][kTile];
  const int thread = threadIdx.y * kSide + threadIdx.x;
  const int time = thread / kTile;
  const int first = blockIdx.y * kTile;
  const int second = blockIdx.x * kTile;
  const float2* channel = signals + static_cast<size_t>(blockIdx.z) * times * antennas;
  const float2* source = channel + time * antennas + thread % kTile;

  float2 sums[kEach][kEach] = {};
  for (int t = 0; t < times; t += kTimes) {
    const float2 x = source[t * antennas + first];
    const float2 y = source[t * antennas + second];
    a[time][thread % kTile] = x;
    b[time][thread % kTile] = y;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTimes; ++k) {
      float2 u[kEach], v[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        u[i] = a[k][threadIdx.y + i * kSide];
        v[i] = b[k][threadIdx.x + i * kSide];
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
          sums[i][j].x += u[i].x * v[j].x;
          sums[i][j].x += u[i].y * v[j].y;
          sums[i][j].y += u[i].y * v[j].x;
          sums[i][j].y -= u[i].x * v[j].y;
        }
      }
    }
    __syncthreads();
  }

  float2* to = out + static_cast<size_t>(blockIdx.z) * antennas * antennas;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int row = first + threadIdx.y + i * kSide;
      to[row * antennas + second + threadIdx.x + j * kSide] = sums[i][j];
    }
  }
}
