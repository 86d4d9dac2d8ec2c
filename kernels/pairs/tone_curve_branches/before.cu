// A tone curve: values up to the knee are scaled, those above are compressed. Neighboring lanes
// take different sides of the branch, so warps run both. Both are short, and DRAM is the limit.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

__device__ __forceinline__ float curve(float x, float knee, float gain, float strength) {
  if (x <= knee) {
    return gain * x;
  } else {
    const float above = x - knee;
    return gain * knee + above / (1.0f + strength * above);
  }
}

// n is a number of float4.
extern "C" __global__ void __launch_bounds__(kThreads)
    tone_map(const float4* __restrict__ image, float4* __restrict__ out, int n, float knee,
             float gain, float strength) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  const float4 pixel = image[i];
  out[i] = make_float4(curve(pixel.x, knee, gain, strength), curve(pixel.y, knee, gain, strength),
                       curve(pixel.z, knee, gain, strength), curve(pixel.w, knee, gain, strength));
}
