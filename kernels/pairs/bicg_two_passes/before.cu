// The two products of a biconjugate gradient step: A p, and A^T r; `out` has the second first. What
// is wrong: two kernels go through A, which is larger than L2, so A comes from DRAM twice.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

// A block for each row.
extern "C" __global__ void __launch_bounds__(kThreads)
    row_products(const float4* __restrict__ a, const float4* __restrict__ p,
                 float* __restrict__ out, int columns) {
  __shared__ float partial[kThreads / 32];
  const float4* row = a + static_cast<long long>(blockIdx.x) * (columns / 4);
  float sum = 0.0f;
#pragma unroll 4
  for (int i = threadIdx.x; i < columns / 4; i += kThreads) {
    const float4 element = row[i];
    const float4 factor = p[i];
    sum += element.x * factor.x + element.y * factor.y + element.z * factor.z +
           element.w * factor.w;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < kThreads / 32; ++i) sum += partial[i];
    out[columns + blockIdx.x] = sum;
  }
}

// A thread has four columns; a block has rows_of_block rows of them.
extern "C" __global__ void __launch_bounds__(kThreads)
    column_products(const float4* __restrict__ a, const float* __restrict__ r,
                    float* __restrict__ out, int columns, int rows_of_block) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int first = blockIdx.y * rows_of_block;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
  for (int row = first; row < first + rows_of_block; ++row) {
    const float4 element = a[static_cast<long long>(row) * (columns / 4) + i];
    const float factor = r[row];
    sum.x += element.x * factor;
    sum.y += element.y * factor;
    sum.z += element.z * factor;
    sum.w += element.w * factor;
  }
  atomicAdd(&out[4 * i], sum.x);
  atomicAdd(&out[4 * i + 1], sum.y);
  atomicAdd(&out[4 * i + 2], sum.z);
  atomicAdd(&out[4 * i + 3], sum.w);
}
