// Applies one of two polynomials to each element of x, one to even and one to odd ones; a thread
// takes two elements. They are a pair of neighbours, an even and an odd one, so that all lanes of a
// warp take the same arm for the first and the same for the second.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

__device__ __forceinline__ float even_arm(float x) {
  float y = 0.1f;
#pragma unroll
  for (int term = 0; term < 32; ++term) y = (y + 0.02f * (term + 1)) * x;
  return y;
}

__device__ __forceinline__ float odd_arm(float x) {
  float y = 1.0f;
#pragma unroll
  for (int term = 0; term < 32; ++term) y = y * x - 0.03f * (term + 1);
  return y;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    two_polynomials(const float* __restrict__ x, float* __restrict__ out, int n) {
  const int i = (blockIdx.x * kThreads + threadIdx.x) * 2;
  if (i + 1 >= n) return;
  const float2 pair = *reinterpret_cast<const float2*>(x + i);
  *reinterpret_cast<float2*>(out + i) = make_float2(even_arm(pair.x), odd_arm(pair.y));
}
