// Fourier transforms of 1024 complex values, one a block: five passes of radix 4 in registers, with
// an exchange through shared memory between them. What is wrong: in the first three exchanges the
// lanes of a warp write to places a multiple of 4, 16 and 64 words apart, four or two to a bank.
//
// Architectures: sm_80, sm_90a.

constexpr int kPoints = 1024;
constexpr int kThreads = kPoints / 4;

// of a place; bits that don't overlap can be permuted one by one
__device__ __forceinline__ unsigned place(unsigned i) { return i; }

__device__ __forceinline__ float2 product(float2 a, float2 b) {
  return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__device__ __forceinline__ void butterfly(float2 (&v)[4]) {
  const float2 a = make_float2(v[0].x + v[2].x, v[0].y + v[2].y);
  const float2 b = make_float2(v[0].x - v[2].x, v[0].y - v[2].y);
  const float2 c = make_float2(v[1].x + v[3].x, v[1].y + v[3].y);
  const float2 d = make_float2(v[1].y - v[3].y, v[3].x - v[1].x);
  v[0] = make_float2(a.x + c.x, a.y + c.y);
  v[1] = make_float2(b.x + d.x, b.y + d.y);
  v[2] = make_float2(a.x - c.x, a.y - c.y);
  v[3] = make_float2(b.x - d.x, b.y - d.y);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fourier(const float2* __restrict__ in, float2* __restrict__ out) {
  __shared__ float real[kPoints];
  __shared__ float imaginary[kPoints];
  const unsigned t = threadIdx.x;
  in += static_cast<size_t>(blockIdx.x) * kPoints;
  out += static_cast<size_t>(blockIdx.x) * kPoints;
  float2 v[4];
#pragma unroll
  for (int r = 0; r < 4; ++r) v[r] = in[t + r * kThreads];
  butterfly(v);
#pragma unroll 1
  for (unsigned span = 1; span < kThreads; span *= 4) {
    const unsigned to = place(4 * t - 3 * (t & (span - 1)));
    const unsigned from = place(t);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      real[to ^ place(r * span)] = v[r].x;
      imaginary[to ^ place(r * span)] = v[r].y;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      v[r] = make_float2(real[from + r * kThreads], imaginary[from + r * kThreads]);
    }
    __syncthreads();
    float2 w;
    __sincosf(-1.57079633f / (4 * span) * (t & (4 * span - 1)), &w.y, &w.x);
    const float2 w2 = product(w, w);
    v[1] = product(v[1], w);
    v[2] = product(v[2], w2);
    v[3] = product(v[3], product(w2, w));
    butterfly(v);
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) out[t + r * kThreads] = v[r];
}
