// The input transform of a Winograd convolution F(6x6, 3x3): a thread takes one tile of 8 by 8
// pixels, transforms its rows and columns, and writes 64 values, each to a matrix of its own.
// What is wrong: the launch bounds ask for eight blocks per SM, which leaves 32 registers a thread
// for a tile of 64 values, so that most of the tile goes to local memory and back.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kTile = 8;
constexpr int kStep = 6;

// The transform of eight values in place.
__device__ __forceinline__ void transform(float (&v)[kTile]) {
  const float even_a = v[2] + v[6] - 4.25f * v[4];
  const float odd_a = v[1] + v[5] - 4.25f * v[3];
  const float even_b = 0.25f * v[2] - 1.25f * v[4] + v[6];
  const float odd_b = 0.5f * v[1] - 2.5f * v[3] + 2.0f * v[5];
  const float even_c = 4.0f * v[2] - 5.0f * v[4] + v[6];
  const float odd_c = 2.0f * v[1] - 2.5f * v[3] + 0.5f * v[5];
  const float first = v[0] - v[6] + 5.25f * (v[4] - v[2]);
  const float last = v[7] - v[1] + 5.25f * (v[3] - v[5]);
  v[0] = first;
  v[1] = even_a + odd_a;
  v[2] = even_a - odd_a;
  v[3] = even_b + odd_b;
  v[4] = even_b - odd_b;
  v[5] = even_c + odd_c;
  v[6] = even_c - odd_c;
  v[7] = last;
}

extern "C" __global__ void __launch_bounds__(kThreads, 8)
    transform_tiles(const float* __restrict__ images, float* __restrict__ out, int tiles_a_row,
                    int side, int tiles) {
  const int tile = blockIdx.x * kThreads + threadIdx.x;
  const int tiles_a_plane = tiles_a_row * tiles_a_row;
  const int plane = tile / tiles_a_plane;
  const int row = tile % tiles_a_plane / tiles_a_row * kStep;
  const int column = tile % tiles_a_row * kStep;
  images += (plane * side + row) * side + column;
  float values[kTile][kTile];
#pragma unroll
  for (int i = 0; i < kTile; ++i) {
#pragma unroll
    for (int j = 0; j < kTile; ++j) values[i][j] = images[i * side + j];
    transform(values[i]);
  }
#pragma unroll
  for (int j = 0; j < kTile; ++j) {
    float v[kTile];
#pragma unroll
    for (int i = 0; i < kTile; ++i) v[i] = values[i][j];
    transform(v);
#pragma unroll
    for (int i = 0; i < kTile; ++i) out[(i * kTile + j) * tiles + tile] = v[i];
  }
}
