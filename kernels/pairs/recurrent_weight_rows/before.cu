// A recurrent layer of 64 units, h = tanh(W h + x), over the steps of a sequence: a block takes a
// sequence, a thread a unit, and the weights stay in shared memory. What is wrong: thread j reads
// row j of the weights, and rows are 64 words apart, so that the lanes of a warp share one bank.
//
// Architectures: sm_80, sm_90a.

constexpr int kUnits = 64;
constexpr int kPitch = kUnits;

extern "C" __global__ void __launch_bounds__(kUnits)
    recurrent_layer(const float* __restrict__ x, const float* __restrict__ weights,
                    float* __restrict__ out, int steps) {
  __shared__ float w[kUnits * kPitch];
  __shared__ float h[2][kUnits];
  const int unit = threadIdx.x;
  for (int row = 0; row < kUnits; ++row) w[row * kPitch + unit] = weights[row * kUnits + unit];
  h[0][unit] = 0.0f;
  x += blockIdx.x * steps * kUnits;
  float state = 0.0f;
  for (int step = 0; step < steps; ++step) {
    __syncthreads();
    float sum = x[step * kUnits + unit];
#pragma unroll 16
    for (int k = 0; k < kUnits; ++k) sum += w[unit * kPitch + k] * h[step % 2][k];
    state = tanhf(sum);
    h[(step + 1) % 2][unit] = state;
  }
  out[blockIdx.x * kUnits + unit] = state;
}
