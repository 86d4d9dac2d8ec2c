// Fused multiply-adds on registers: a thread has kChains values, and at each step every value v
// becomes v * a + b and then v * c + d. A launch computes 4 FLOP a value and step. With c = 1 / a
// and d = -b / a the values come back after each step, so that they neither grow nor come to rest.
//
// REAL is float or double.

#ifndef REAL
#define REAL float
#endif

constexpr int kThreads = 256;
constexpr int kChains = 16;

extern "C" __global__ void __launch_bounds__(kThreads, 4)
    multiply_add(const REAL* __restrict__ start, REAL* __restrict__ end, int steps, REAL a, REAL b,
                 REAL c, REAL d) {
  const int stride = gridDim.x * kThreads;
  const int first = blockIdx.x * kThreads + threadIdx.x;
  REAL values[kChains];
#pragma unroll
  for (int j = 0; j < kChains; ++j) values[j] = start[first + j * stride];
#pragma unroll 8
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int j = 0; j < kChains; ++j) values[j] = fma(values[j], a, b);
#pragma unroll
    for (int j = 0; j < kChains; ++j) values[j] = fma(values[j], c, d);
  }
#pragma unroll
  for (int j = 0; j < kChains; ++j) end[first + j * stride] = values[j];
}
