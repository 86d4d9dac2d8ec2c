// Multiplies each row of x by a few vectors; a warp has a run of rows. columns is a number of
// float4. The loop over rows is the outer one: a row comes from DRAM for the first vector and from
// L1 for the others.
//
// Architectures: sm_80, sm_90a.

__device__ __forceinline__ float dot(float4 a, float4 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

extern "C" __global__ void project(const float4* __restrict__ x,
                                   const float4* __restrict__ vectors, float* __restrict__ out,
                                   int rows_of_warp, int columns, int count) {
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  const int first = warp * rows_of_warp;

  for (int row = first; row < first + rows_of_warp; ++row) {
    for (int k = 0; k < count; ++k) {
      const float4* source = x + static_cast<long long>(row) * columns;
      const float4* vector = vectors + k * columns;
      float sum = 0.0f;
#pragma unroll 4
      for (int column = lane; column < columns; column += 32) {
        sum += dot(source[column], vector[column]);
      }
      for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
      if (lane == 0) out[row * count + k] = sum;
    }
  }
}
