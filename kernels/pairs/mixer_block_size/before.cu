// Mixes four tracks of samples with a gain each. Blocks are one warp, and an SM holds 32 blocks, so
// at least half of its warp slots are empty. A thread has eight 16-byte loads in flight, which is
// enough to keep DRAM at its limit.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 32;
constexpr int kTracks = 4;
constexpr int kEach = 2;

extern "C" __global__ void __launch_bounds__(kThreads)
    mix(const float4* __restrict__ tracks, const float* __restrict__ gains,
        float4* __restrict__ out, int n) {
  const int first = blockIdx.x * kThreads * kEach + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = first + k * kThreads;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int track = 0; track < kTracks; ++track) {
      const float4 sample = tracks[track * n + i];
      const float gain = gains[track];
      sum.x += gain * sample.x;
      sum.y += gain * sample.y;
      sum.z += gain * sample.z;
      sum.w += gain * sample.w;
    }
    out[i] = sum;
  }
}
