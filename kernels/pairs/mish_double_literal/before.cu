// The Mish activation, x tanh(log(1 + exp(x))). What is wrong: the literal 1.0 is a double, so
// that the logarithm, the hyperbolic tangent and the product are computed in double precision.
//
// Architectures: sm_80, sm_90a.

extern "C" __global__ void mish(const float* __restrict__ x, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float value = x[i];
  out[i] = value * tanh(log(1.0 + expf(value)));
}
