// Fourier transforms of 512 complex numbers each: a block of 64 threads takes one, each thread
// eight of its values, in three passes of radix 8 that exchange values through shared memory. What
// is wrong: the exchanges store with strides of 8 and 64 words, so that lanes share banks.
//
// Architectures: sm_80, sm_90a.

constexpr int kPoints = 512;
constexpr int kThreads = 64;
constexpr int kRadix = 8;
constexpr float kHalfRoot = 0.70710678118654752f;

__device__ __forceinline__ float2 add(float2 a, float2 b) {
  return make_float2(a.x + b.x, a.y + b.y);
}
__device__ __forceinline__ float2 subtract(float2 a, float2 b) {
  return make_float2(a.x - b.x, a.y - b.y);
}
__device__ __forceinline__ float2 times(float2 a, float2 b) {
  return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// The transform of eight values; value r of the result is v[order(r)].
__device__ __forceinline__ void transform8(float2 (&v)[kRadix]) {
  const float2 roots[4] = {make_float2(1.0f, 0.0f), make_float2(kHalfRoot, -kHalfRoot),
                           make_float2(0.0f, -1.0f), make_float2(-kHalfRoot, -kHalfRoot)};
#pragma unroll
  for (int half = 4; half > 0; half /= 2) {
#pragma unroll
    for (int first = 0; first < kRadix; first += 2 * half) {
#pragma unroll
      for (int k = 0; k < half; ++k) {
        const float2 a = v[first + k];
        const float2 b = v[first + k + half];
        v[first + k] = add(a, b);
        v[first + k + half] = times(subtract(a, b), roots[k * (4 / half)]);
      }
    }
  }
}

__device__ __forceinline__ constexpr int order(int r) {
  return (r & 1) * 4 + (r & 2) + (r >> 2);
}

__device__ __forceinline__ void twiddle(float2 (&v)[kRadix], int index, int span) {
  const float angle = static_cast<float>(index) / (4 * span);
  const float2 root = make_float2(cospif(angle), -sinpif(angle));
  float2 power = root;
#pragma unroll
  for (int r = 1; r < kRadix; ++r) {
    v[r] = times(v[r], power);
    power = times(power, root);
  }
}

template <int kSpan>
__device__ __forceinline__ int place(int i) {
  return i;
}

template <int kSpan>
__device__ __forceinline__ void exchange(float2 (&v)[kRadix], float* re, float* im) {
  const int t = threadIdx.x;
  const int first = t / kSpan * kSpan * kRadix + t % kSpan;
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kRadix; ++r) {
    re[place<kSpan>(first + r * kSpan)] = v[order(r)].x;
    im[place<kSpan>(first + r * kSpan)] = v[order(r)].y;
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kRadix; ++r) {
    v[r].x = re[place<kSpan>(t + r * kThreads)];
    v[r].y = im[place<kSpan>(t + r * kThreads)];
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fourier512(const float2* __restrict__ x, float2* __restrict__ out) {
  __shared__ float re[kPoints];
  __shared__ float im[kPoints];
  const int t = threadIdx.x;
  x += static_cast<size_t>(blockIdx.x) * kPoints;
  out += static_cast<size_t>(blockIdx.x) * kPoints;
  float2 v[kRadix];
#pragma unroll
  for (int r = 0; r < kRadix; ++r) v[r] = x[t + r * kThreads];
  transform8(v);
  exchange<1>(v, re, im);
  twiddle(v, t % 8, 8);
  transform8(v);
  exchange<8>(v, re, im);
  twiddle(v, t, 64);
  transform8(v);
#pragma unroll
  for (int r = 0; r < kRadix; ++r) out[t + r * kThreads] = v[order(r)];
}
