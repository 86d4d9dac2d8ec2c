// out = x + scale * y, in units of four floats. Blocks stream their tiles through a ring in shared
// memory that leaves room for a quarter of the warps: it holds the bytes in flight that otherwise
// many warps would have, enough to keep DRAM at its limit. A thread reads only what it copied.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kStages = 12;

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void cp_async_16(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

extern "C" __global__ void __launch_bounds__(kThreads)
    triad(const float4* __restrict__ x, const float4* __restrict__ y, float4* __restrict__ out,
          int n, float scale) {
  __shared__ float4 xs[kStages][kThreads], ys[kStages][kThreads];

  const int stride = gridDim.x * kThreads;
  const int first = blockIdx.x * kThreads + threadIdx.x;

  auto fetch = [&](int stage, int i) {
    if (i < n) {
      cp_async_16(shared_address(&xs[stage][threadIdx.x]), x + i);
      cp_async_16(shared_address(&ys[stage][threadIdx.x]), y + i);
    }
    cp_async_commit();  // also past the end: the wait below counts groups
  };

  for (int stage = 0; stage < kStages - 1; ++stage) fetch(stage, first + stage * stride);

  int stage = 0;
  for (int i = first; i < n; i += stride) {
    cp_async_wait<kStages - 2>();
    const float4 a = xs[stage][threadIdx.x];
    const float4 b = ys[stage][threadIdx.x];
    fetch(stage == 0 ? kStages - 1 : stage - 1, i + (kStages - 1) * stride);
    out[i] = make_float4(a.x + scale * b.x, a.y + scale * b.y, a.z + scale * b.z,
                         a.w + scale * b.w);
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
}
