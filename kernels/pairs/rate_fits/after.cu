// Rates of 64 reactions in the cells of a flame: a fit of 64 terms to each in the cell's state. In
// each round a warp evaluates one reaction in the next 128 cells, four in a lane.
// The coefficients are data, in shared memory, and the code is a loop.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kReactions = 64;
constexpr int kTerms = 64;
constexpr int kCells = 4;  // a lane's

__device__ constexpr float coefficient(int reaction, int term) {
  return static_cast<float>((reaction * 37 + term * 11 + 5) % 67 - 33) / 64.0f;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    rates(const float* __restrict__ states, float* __restrict__ out, int cells) {
  __shared__ __align__(16) float coefficients[kReactions][kTerms];
  for (int i = threadIdx.x; i < kReactions * kTerms; i += kThreads) {
    coefficients[i / kTerms][i % kTerms] = coefficient(i / kTerms, i % kTerms);
  }
  __syncthreads();

  const int lane = threadIdx.x % 32;
  const int warp = blockIdx.x * kWarps + threadIdx.x / 32;
  const int warps = gridDim.x * kWarps;

#pragma unroll 1
  for (int round = 0; round < kReactions; ++round) {
    const int group = (warp + round) % warps;
    const int reaction = (group * 5 + round) % kReactions;
    const int first = group * 32 * kCells + lane;
    float x[kCells];
#pragma unroll
    for (int j = 0; j < kCells; ++j) x[j] = 2.0f * states[first + j * 32] - 1.0f;
    float y[kCells] = {};
#pragma unroll 4
    for (int term = 0; term < kTerms; term += 4) {
      const float4 four = *reinterpret_cast<const float4*>(&coefficients[reaction][term]);
#pragma unroll
      for (int j = 0; j < kCells; ++j) {
        y[j] = y[j] * x[j] + four.x;
        y[j] = y[j] * x[j] + four.y;
        y[j] = y[j] * x[j] + four.z;
        y[j] = y[j] * x[j] + four.w;
      }
    }
#pragma unroll
    for (int j = 0; j < kCells; ++j) out[reaction * cells + first + j * 32] = y[j];
  }
}
