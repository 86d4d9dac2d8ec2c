// Scales the four values of each hit by the gain of its channel. Channels come in random order, so
// the lanes of a warp read gains all over the table. The table fits in the caches, and the hits,
// which come from DRAM, take longer than the gains.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kEach = 4;

extern "C" __global__ void __launch_bounds__(kThreads)
    calibrate(const float4* __restrict__ hits, const int* __restrict__ channels,
              const float* __restrict__ gains, float4* __restrict__ out) {
  const int first = blockIdx.x * kThreads * kEach + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = first + k * kThreads;
    const float gain = gains[channels[i]];
    const float4 hit = hits[i];
    out[i] = make_float4(gain * hit.x, gain * hit.y, gain * hit.z, gain * hit.w);
  }
}
