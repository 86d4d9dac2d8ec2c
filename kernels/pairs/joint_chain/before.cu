// Where the tip of an arm of seven joints is, for each of n candidates of their angles: a link is a
// matrix of 3 by 4, an offset in its last column, and a joint turns about its z axis.
// What is wrong: products and sums round by themselves, so that every multiply-add takes two
// instructions on the FP32 pipes.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kJoints = 7;

__device__ __forceinline__ float multiply_add(float a, float b, float c) {
  return __fadd_rn(__fmul_rn(a, b), c);
}

// Taylor series to the eleventh power, good to an angle of three.
__device__ __forceinline__ void sine_cosine(float angle, float& sine, float& cosine) {
  const float x = angle * angle;
  float s = -2.5052108e-8f;
  s = multiply_add(s, x, 2.7557319e-6f);
  s = multiply_add(s, x, -1.9841270e-4f);
  s = multiply_add(s, x, 8.3333333e-3f);
  s = multiply_add(s, x, -0.16666667f);
  s = multiply_add(s, x, 1.0f);
  sine = s * angle;
  float c = 2.0876757e-9f;
  c = multiply_add(c, x, -2.7557319e-7f);
  c = multiply_add(c, x, 2.4801587e-5f);
  c = multiply_add(c, x, -1.3888889e-3f);
  c = multiply_add(c, x, 4.1666667e-2f);
  c = multiply_add(c, x, -0.5f);
  cosine = multiply_add(c, x, 1.0f);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    tips(const float* __restrict__ angles, const float* __restrict__ links,
         float* __restrict__ out, int n) {
  __shared__ float4 rows[kJoints][3];
  if (threadIdx.x < kJoints * 3) {
    rows[threadIdx.x / 3][threadIdx.x % 3] = reinterpret_cast<const float4*>(links)[threadIdx.x];
  }
  __syncthreads();

  const int i = blockIdx.x * kThreads + threadIdx.x;
  float frame[3][4] = {};
  frame[0][0] = frame[1][1] = frame[2][2] = 1.0f;
#pragma unroll
  for (int joint = 0; joint < kJoints; ++joint) {
    float sine, cosine;
    sine_cosine(angles[joint * n + i], sine, cosine);
    const float4 x = rows[joint][0], y = rows[joint][1], z = rows[joint][2];
#pragma unroll
    for (int row = 0; row < 3; ++row) {
      float* f = frame[row];
      const float a = multiply_add(f[0], cosine, f[1] * sine);
      const float b = multiply_add(f[1], cosine, f[0] * -sine);
      const float c = f[2];
      f[0] = multiply_add(a, x.x, multiply_add(b, y.x, c * z.x));
      f[1] = multiply_add(a, x.y, multiply_add(b, y.y, c * z.y));
      f[2] = multiply_add(a, x.z, multiply_add(b, y.z, c * z.z));
      f[3] = multiply_add(a, x.w, multiply_add(b, y.w, multiply_add(c, z.w, f[3])));
    }
  }
#pragma unroll
  for (int row = 0; row < 3; ++row) out[row * n + i] = frame[row][3];
}
