// Removes the lens distortion of image points by sixteen fixed-point iterations, in plain operators
// that the compiler fuses.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kIterations = 16;

extern "C" __global__ void __launch_bounds__(kThreads)
    undistort(const float2* __restrict__ points, float2* __restrict__ out, float k1, float k2,
              float k3, float p1, float p2) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float2 seen = points[i];
  float x = seen.x;
  float y = seen.y;
#pragma unroll 2
  for (int step = 0; step < kIterations; ++step) {
    const float xx = x * x;
    const float yy = y * y;
    const float xy = 2.0f * (x * y);
    const float r2 = xx + yy;
    const float radial = ((k3 * r2 + k2) * r2 + k1) * r2 + 1.0f;
    const float shift_x = p1 * xy + p2 * (r2 + 2.0f * xx);
    const float shift_y = p2 * xy + p1 * (r2 + 2.0f * yy);
    const float inverse = __fdividef(1.0f, radial);
    x = (seen.x - shift_x) * inverse;
    y = (seen.y - shift_y) * inverse;
  }
  out[i] = make_float2(x, y);
}
