// Fills a table with rows of 31 features, then adds up 32 rows of it for each bag of indices. Rows
// lie 32 floats apart: each begins on a line, and a warp that reads one takes four sectors.
//
// Architectures: sm_80, sm_90a.

constexpr int kFeatures = 31;
constexpr int kPitch = 32;
constexpr int kBag = 32;  // indices, one for each lane

extern "C" __global__ void fill_table(const float* __restrict__ x,
                                      const float* __restrict__ weights, float* __restrict__ table,
                                      int rows) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = at / kPitch;
  const int feature = at % kPitch;
  if (row < rows) table[at] = feature < kFeatures ? x[row] * weights[feature] : 0.0f;
}

extern "C" __global__ void sum_bags(const float* __restrict__ table,
                                    const int* __restrict__ indices, float* __restrict__ out,
                                    int bags) {
  const int bag = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (bag >= bags) return;
  const int index = indices[bag * kBag + lane];
  float sum = 0.0f;
#pragma unroll 8
  for (int j = 0; j < kBag; ++j) {
    const int row = __shfl_sync(~0u, index, j);
    if (lane < kFeatures) sum += table[row * kPitch + lane];
  }
  if (lane < kFeatures) out[bag * kFeatures + lane] = sum;
}
