// Rates of 64 reactions in the cells of a flame: a fit of 64 terms to each in the cell's state. In
// each round a warp evaluates one reaction in the next 128 cells, four in a lane.
// What is wrong: a generator wrote each reaction's fit out with its coefficients as literals, and
// the warps on an SM go through all of that code at the same time.
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

template <int kReaction>
__device__ __forceinline__ void fit(const float (&x)[kCells], float (&y)[kCells]) {
#pragma unroll
  for (int term = 0; term < kTerms; ++term) {
#pragma unroll
    for (int j = 0; j < kCells; ++j) y[j] = y[j] * x[j] + coefficient(kReaction, term);
  }
}

template <int kFirst, int kCount>
__device__ __forceinline__ void evaluate(int reaction, const float (&x)[kCells],
                                         float (&y)[kCells]) {
  if constexpr (kCount == 1) {
    fit<kFirst>(x, y);  // 4 KiB of instructions
  } else if (reaction < kFirst + kCount / 2) {
    evaluate<kFirst, kCount / 2>(reaction, x, y);
  } else {
    evaluate<kFirst + kCount / 2, kCount / 2>(reaction, x, y);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    rates(const float* __restrict__ states, float* __restrict__ out, int cells) {
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
    evaluate<0, kReactions>(reaction, x, y);
#pragma unroll
    for (int j = 0; j < kCells; ++j) out[reaction * cells + first + j * 32] = y[j];
  }
}
