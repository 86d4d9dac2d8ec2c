// A diffusion step of a weather model on a grid with a margin: a cross of nine points, two to each
// side. A thread takes four points of a column. Neighbors are read from global memory again and
// again, but L1 has them, in less time than DRAM takes for the grids.
//
// Architectures: sm_80, sm_90a.

constexpr int kWidth = 32;
constexpr int kHeight = 8;
constexpr int kEach = 4;
constexpr int kMargin = 2;  // rows above and below
constexpr int kIndent = 16;  // columns to the left

extern "C" __global__ void __launch_bounds__(kWidth* kHeight)
    diffuse(const float* __restrict__ u, float* __restrict__ out, int columns, int pitch,
            float near, float far) {
  const int x = blockIdx.x * kWidth + threadIdx.x;
  const int y = (blockIdx.y * kHeight + threadIdx.y) * kEach;
  const float* from = u + (y + kMargin) * pitch + x + kIndent;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const float* p = from + k * pitch;
    const float first = p[-1] + p[1] + p[-pitch] + p[pitch];
    const float second = p[-2] + p[2] + p[-2 * pitch] + p[2 * pitch];
    out[(y + k) * columns + x] = p[0] + near * (first - 4.0f * p[0]) - far * (second - 4.0f * p[0]);
  }
}
