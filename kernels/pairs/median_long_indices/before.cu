// A 3 by 3 median filter with clamped borders, a thread for each pixel. What is wrong: the offsets
// of the nine pixels are computed in 64 bits, which takes several instructions each, where 32 bits
// take one.
//
// Architectures: sm_80, sm_90a.

using Index = long long;

__device__ __forceinline__ void order(float& a, float& b) {
  const float low = fminf(a, b);
  b = fmaxf(a, b);
  a = low;
}

extern "C" __global__ void median(const float* __restrict__ in, float* __restrict__ out, int rows,
                                  int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= columns) return;
  float v[9];
#pragma unroll
  for (int i = 0; i < 9; ++i) {
    const Index y = min(max(row + i / 3 - 1, 0), rows - 1);
    const Index x = min(max(column + i % 3 - 1, 0), columns - 1);
    v[i] = in[y * columns + x];
  }
  order(v[1], v[2]), order(v[4], v[5]), order(v[7], v[8]);
  order(v[0], v[1]), order(v[3], v[4]), order(v[6], v[7]);
  order(v[1], v[2]), order(v[4], v[5]), order(v[7], v[8]);
  order(v[0], v[3]), order(v[5], v[8]), order(v[4], v[7]);
  order(v[3], v[6]), order(v[1], v[4]), order(v[2], v[5]);
  order(v[4], v[7]), order(v[4], v[2]), order(v[6], v[4]);
  order(v[4], v[2]);
  out[static_cast<Index>(row) * columns + column] = v[4];
}
