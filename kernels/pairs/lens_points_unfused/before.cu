// Removes the lens distortion of image points by sixteen fixed-point iterations. What is wrong: the
// multiplications and additions are intrinsics that round each, from a port that had to agree with
// a CPU to the last bit, so the compiler fuses none of them.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kIterations = 16;

__device__ __forceinline__ float mul(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }

extern "C" __global__ void __launch_bounds__(kThreads)
    undistort(const float2* __restrict__ points, float2* __restrict__ out, float k1, float k2,
              float k3, float p1, float p2) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float2 seen = points[i];
  float x = seen.x;
  float y = seen.y;
#pragma unroll 2
  for (int step = 0; step < kIterations; ++step) {
    const float xx = mul(x, x);
    const float yy = mul(y, y);
    const float xy = mul(2.0f, mul(x, y));
    const float r2 = add(xx, yy);
    const float radial = add(mul(add(mul(add(mul(k3, r2), k2), r2), k1), r2), 1.0f);
    const float shift_x = add(mul(p1, xy), mul(p2, add(r2, mul(2.0f, xx))));
    const float shift_y = add(mul(p2, xy), mul(p1, add(r2, mul(2.0f, yy))));
    const float inverse = __fdividef(1.0f, radial);
    x = mul(add(seen.x, -shift_x), inverse);
    y = mul(add(seen.y, -shift_y), inverse);
  }
  out[i] = make_float2(x, y);
}
