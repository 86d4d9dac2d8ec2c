// The cosine of two vectors for each of many pairs of vectors, a warp for each pair. The loop is
// unrolled eight times.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kLanes = 32;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

// `length` is a number of float4.
extern "C" __global__ void __launch_bounds__(kThreads)
    cosines(const float4* __restrict__ a, const float4* __restrict__ b, float* __restrict__ out,
            int length) {
  const int pair = (blockIdx.x * kThreads + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  a += static_cast<long long>(pair) * length;
  b += static_cast<long long>(pair) * length;
  float dot = 0.0f, a_square = 0.0f, b_square = 0.0f;
#pragma unroll 8
  for (int i = lane; i < length; i += kLanes) {
    const float4 u = a[i];
    const float4 v = b[i];
    dot += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
    a_square += u.x * u.x + u.y * u.y + u.z * u.z + u.w * u.w;
    b_square += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  dot = warp_sum(dot);
  a_square = warp_sum(a_square);
  b_square = warp_sum(b_square);
  if (lane == 0) out[pair] = dot * rsqrtf(a_square * b_square);
}
