// A collision step of a lattice Boltzmann method with 19 velocities (D3Q19, BGK); `cells` values of
// each velocity lie together. A thread takes four cells and keeps their 76 values in registers, so
// few warps fit. The four cells' loads in flight fill DRAM's queue all the same.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 128;
constexpr int kSpeeds = 19;

__device__ __forceinline__ void collide(float (&f)[kSpeeds], float omega) {
  const int x[kSpeeds] = {0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0};
  const int y[kSpeeds] = {0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1};
  const int z[kSpeeds] = {0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1};
  float density = 0.0f, u = 0.0f, v = 0.0f, w = 0.0f;
#pragma unroll
  for (int q = 0; q < kSpeeds; ++q) {
    density += f[q];
    u += x[q] * f[q];
    v += y[q] * f[q];
    w += z[q] * f[q];
  }
  const float inverse = 1.0f / density;
  u *= inverse, v *= inverse, w *= inverse;
  const float base = 1.0f - 1.5f * (u * u + v * v + w * w);
#pragma unroll
  for (int q = 0; q < kSpeeds; ++q) {
    const float weight = q == 0 ? 1.0f / 3.0f : q < 7 ? 1.0f / 18.0f : 1.0f / 36.0f;
    const float along = x[q] * u + y[q] * v + z[q] * w;
    const float equilibrium = weight * density * (base + along * (3.0f + 4.5f * along));
    f[q] += omega * (equilibrium - f[q]);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    collision(const float* __restrict__ in, float* __restrict__ out, int cells, float omega) {
  const int cell = (blockIdx.x * kThreads + threadIdx.x) * 4;
  if (cell >= cells) return;
  float f[4][kSpeeds];
#pragma unroll
  for (int q = 0; q < kSpeeds; ++q) {
    const float4 four = *reinterpret_cast<const float4*>(in + q * cells + cell);
    f[0][q] = four.x, f[1][q] = four.y, f[2][q] = four.z, f[3][q] = four.w;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) collide(f[k], omega);
#pragma unroll
  for (int q = 0; q < kSpeeds; ++q) {
    *reinterpret_cast<float4*>(out + q * cells + cell) =
        make_float4(f[0][q], f[1][q], f[2][q], f[3][q]);
  }
}
