// Patches of 3 by 3 pixels as the columns of a matrix (im2col), with zero padding, for a
// convolution by a matrix product. The grid gives the plane and the row, and a thread writes the
// nine elements of a pixel by 32-bit indices.
//
// Architectures: sm_80, sm_90a.

constexpr int kKernel = 3;

extern "C" __global__ void patches(const float* __restrict__ x, float* __restrict__ out, int height,
                                   int width) {
  const int column = threadIdx.x;
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  const int plane = blockIdx.y;
  x += plane * height * width;
  out += static_cast<size_t>(plane) * kKernel * kKernel * height * width;
#pragma unroll
  for (int dy = 0; dy < kKernel; ++dy) {
#pragma unroll
    for (int dx = 0; dx < kKernel; ++dx) {
      const int from_row = row + dy - kKernel / 2;
      const int from_column = column + dx - kKernel / 2;
      float value = 0.0f;
      if (from_row >= 0 && from_row < height && from_column >= 0 && from_column < width) {
        value = x[from_row * width + from_column];
      }
      out[((dy * kKernel + dx) * height + row) * width + column] = value;
    }
  }
}
