// The magnetic update of a finite-difference time-domain scheme in two dimensions. Each thread
// reads its four electric values from global memory; neighbors read two of them again.
//
// Architectures: sm_80, sm_90a.

constexpr int kColumns = 32;
constexpr int kRows = 8;

// ex has columns + 1 columns, ey has rows + 1 rows.
extern "C" __global__ void __launch_bounds__(kColumns* kRows)
    magnetic(const float* __restrict__ ex, const float* __restrict__ ey,
             const float* __restrict__ hz, float* __restrict__ out, int columns, float rate) {
  const int column = blockIdx.x * kColumns + threadIdx.x;
  const int row = blockIdx.y * kRows + threadIdx.y;
  const float across = ex[row * (columns + 1) + column + 1] - ex[row * (columns + 1) + column];
  const float along = ey[(row + 1) * columns + column] - ey[row * columns + column];
  out[row * columns + column] = hz[row * columns + column] - rate * (across + along);
}
