// The Laplacian of a seismic wave field on a grid with margins: a cross of 25 points, four to each
// side. Reads go through L1, which has what neighboring threads read.
//
// Architectures: sm_80, sm_90a.

constexpr int kWidth = 32;
constexpr int kHeight = 8;
constexpr int kRadius = 4;  // and rows and planes of margin
constexpr int kIndent = 16;  // columns of margin

__device__ __forceinline__ float read(const float* p) { return *p; }

extern "C" __global__ void __launch_bounds__(kWidth* kHeight)
    laplacian(const float* __restrict__ field, float* __restrict__ out, int pitch, int plane) {
  const int x = blockIdx.x * kWidth + threadIdx.x;
  const int y = blockIdx.y * kHeight + threadIdx.y;
  const int z = blockIdx.z;
  const float weights[kRadius] = {1.6f, -0.2f, 0.025396825f, -0.0017857143f};
  const float* p = field + (z + kRadius) * plane + (y + kRadius) * pitch + x + kIndent;
  float sum = -8.5416667f * read(p);
#pragma unroll
  for (int r = 1; r <= kRadius; ++r) {
    const float ring = read(p - r) + read(p + r) + read(p - r * pitch) + read(p + r * pitch) +
                       read(p - r * plane) + read(p + r * plane);
    sum += weights[r - 1] * ring;
  }
  const int columns = gridDim.x * kWidth;
  const int rows = gridDim.y * kHeight;
  out[(z * rows + y) * columns + x] = sum;
}
