// A diffusion step of a weather model on a grid with a margin: a cross of nine points, two to each
// side. A thread takes four points of a column. A block stages its part of the grid in shared
// memory.
//
// Architectures: sm_80, sm_90a.

constexpr int kWidth = 32;
constexpr int kHeight = 8;
constexpr int kEach = 4;
constexpr int kMargin = 2;  // rows above and below
constexpr int kIndent = 16;  // columns to the left
constexpr int kRows = kHeight * kEach + 2 * kMargin;
constexpr int kColumns = kWidth + 2 * kMargin;

extern "C" __global__ void __launch_bounds__(kWidth* kHeight)
    diffuse(const float* __restrict__ u, float* __restrict__ out, int columns, int pitch,
            float near, float far) {
  __shared__ float tile[kRows][kColumns];
  const int first_x = blockIdx.x * kWidth;
  const int first_y = blockIdx.y * kHeight * kEach;
  const float* from = u + first_y * pitch + first_x + kIndent - kMargin;
  for (int row = threadIdx.y; row < kRows; row += kHeight) {
    for (int column = threadIdx.x; column < kColumns; column += kWidth) {
      tile[row][column] = from[row * pitch + column];
    }
  }
  __syncthreads();
  const int column = threadIdx.x + kMargin;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int row = threadIdx.y * kEach + k + kMargin;
    const float center = tile[row][column];
    const float first = tile[row][column - 1] + tile[row][column + 1] + tile[row - 1][column] +
                        tile[row + 1][column];
    const float second = tile[row][column - 2] + tile[row][column + 2] + tile[row - 2][column] +
                         tile[row + 2][column];
    out[(first_y + threadIdx.y * kEach + k) * columns + first_x + threadIdx.x] =
        center + near * (first - 4.0f * center) - far * (second - 4.0f * center);
  }
}
