// Scales the four values of each hit by the gain of its channel. A block sorts its 1024 channels
// into buckets of 1024 neighboring channels first, so that a warp reads gains that lie together.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kEach = 4;
constexpr int kHits = kThreads * kEach;
constexpr int kBucketBits = 10;
constexpr int kBuckets = 32;  // of a table of 32768 gains
static_assert(kBuckets == 32);

extern "C" __global__ void __launch_bounds__(kThreads)
    calibrate(const float4* __restrict__ hits, const int* __restrict__ channels,
              const float* __restrict__ gains, float4* __restrict__ out) {
  __shared__ int starts[kBuckets];
  __shared__ int sorted_channels[kHits];
  __shared__ int sorted_places[kHits];
  __shared__ float hit_gains[kHits];
  const int first = blockIdx.x * kHits;

  if (threadIdx.x < kBuckets) starts[threadIdx.x] = 0;
  __syncthreads();
  int channel[kEach], rank[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    channel[k] = channels[first + k * kThreads + threadIdx.x];
    rank[k] = atomicAdd(&starts[channel[k] >> kBucketBits], 1);
  }
  __syncthreads();
  if (threadIdx.x < kBuckets) {
    const int count = starts[threadIdx.x];
    int sum = count;
#pragma unroll
    for (int offset = 1; offset < kBuckets; offset *= 2) {
      const int below = __shfl_up_sync(0xffffffffu, sum, offset);
      if (threadIdx.x >= offset) sum += below;
    }
    starts[threadIdx.x] = sum - count;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int to = starts[channel[k] >> kBucketBits] + rank[k];
    sorted_channels[to] = channel[k];
    sorted_places[to] = k * kThreads + threadIdx.x;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = k * kThreads + threadIdx.x;
    hit_gains[sorted_places[i]] = gains[sorted_channels[i]];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = k * kThreads + threadIdx.x;
    const float gain = hit_gains[i];
    const float4 hit = hits[first + i];
    out[first + i] = make_float4(gain * hit.x, gain * hit.y, gain * hit.z, gain * hit.w);
  }
}
