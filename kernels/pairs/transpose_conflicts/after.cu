// Transposes an n by n matrix through tiles in shared memory; n is a multiple of 32. The tile's
// rows are padded by one word, so that a column lies in 32 banks.
//
// Architectures: sm_80, sm_90a.

constexpr int kTile = 32;
constexpr int kRows = 8;  // of a tile at once: a block is kTile by kRows threads

extern "C" __global__ void __launch_bounds__(kTile* kRows)
    transpose(const float* __restrict__ x, float* __restrict__ out, int n) {
  __shared__ float tile[kTile][kTile + 1];

  const int column = blockIdx.x * kTile + threadIdx.x;
  const int row = blockIdx.y * kTile + threadIdx.y;
#pragma unroll
  for (int j = 0; j < kTile; j += kRows) {
    tile[threadIdx.y + j][threadIdx.x] = x[(row + j) * n + column];
  }
  __syncthreads();

  const int out_column = blockIdx.y * kTile + threadIdx.x;
  const int out_row = blockIdx.x * kTile + threadIdx.y;
#pragma unroll
  for (int j = 0; j < kTile; j += kRows) {
    out[(out_row + j) * n + out_column] = tile[threadIdx.x][threadIdx.y + j];
  }
}
