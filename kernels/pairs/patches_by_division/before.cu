// Patches of 3 by 3 pixels as the columns of a matrix (im2col), with zero padding, for a
// convolution by a matrix product. What is wrong: a thread finds the place of its one element by
// divisions of 64-bit indices by numbers that the compiler does not know.
//
// Architectures: sm_80, sm_90a.

extern "C" __global__ void patches(const float* __restrict__ x, float* __restrict__ out,
                                   long long height, long long width,
                                   long long kernel, long long total) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const long long column = i % width;
  const long long row = i / width % height;
  const long long dx = i / (width * height) % kernel;
  const long long dy = i / (width * height * kernel) % kernel;
  const long long plane = i / (width * height * kernel * kernel);
  const long long from_row = row + dy - kernel / 2;
  const long long from_column = column + dx - kernel / 2;
  float value = 0.0f;
  if (from_row >= 0 && from_row < height && from_column >= 0 && from_column < width) {
    value = x[(plane * height + from_row) * width + from_column];
  }
  out[i] = value;
}
