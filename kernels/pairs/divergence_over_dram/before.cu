// Applies one of two polynomials to each element of x, one to even and one to odd ones; a thread
// takes two elements. What is wrong: neighbouring lanes take different arms of the branch, so that
// every warp runs both. Without that, it would be at the limit of DRAM very soon.
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
  const int i = blockIdx.x * 2 * kThreads + threadIdx.x;
  if (i + kThreads >= n) return;
  const float first = x[i];
  const float second = x[i + kThreads];
  float from_first, from_second;
  if (threadIdx.x % 2 == 0) {
    from_first = even_arm(first);
    from_second = even_arm(second);
  } else {
    from_first = odd_arm(first);
    from_second = odd_arm(second);
  }
  out[i] = from_first;
  out[i + kThreads] = from_second;
}
