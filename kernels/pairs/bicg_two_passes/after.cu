// The two products of a biconjugate gradient step: A p, and A^T r; `out` has the second first. One
// kernel uses each element of A for both.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kRows = 8;  // at a time

// A thread has four columns; a block has rows_of_block rows of them, a multiple of kRows.
extern "C" __global__ void __launch_bounds__(kThreads)
    products(const float4* __restrict__ a, const float4* __restrict__ p,
             const float* __restrict__ r, float* __restrict__ out, int columns,
             int rows_of_block) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int first = blockIdx.y * rows_of_block;
  const float4 own = p[i];
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int row = first; row < first + rows_of_block; row += kRows) {
    float products_of_row[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const float4 element = a[static_cast<long long>(row + k) * (columns / 4) + i];
      const float factor = r[row + k];
      sum.x += element.x * factor;
      sum.y += element.y * factor;
      sum.z += element.z * factor;
      sum.w += element.w * factor;
      products_of_row[k] =
          element.x * own.x + element.y * own.y + element.z * own.z + element.w * own.w;
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      float product = products_of_row[k];
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) {
        product += __shfl_down_sync(~0u, product, offset);
      }
      if (threadIdx.x % 32 == 0) atomicAdd(&out[columns + row + k], product);
    }
  }
  atomicAdd(&out[4 * i], sum.x);
  atomicAdd(&out[4 * i + 1], sum.y);
  atomicAdd(&out[4 * i + 2], sum.z);
  atomicAdd(&out[4 * i + 3], sum.w);
}
