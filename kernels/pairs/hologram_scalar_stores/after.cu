// The complex field of eight plane waves on the pixels of a spatial light modulator, real and
// imaginary parts side by side. A thread stores the two parts by one vector.
//
// Architectures: sm_80, sm_90a.

constexpr int kWaves = 8;

extern "C" __global__ void field(const float4* __restrict__ waves, float* __restrict__ out,
                                 int rows, int columns, float spacing) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= columns) return;
  const float x = spacing * (column - columns / 2);
  const float y = spacing * (row - rows / 2);
  float real = 0.0f;
  float imaginary = 0.0f;
#pragma unroll
  for (int i = 0; i < kWaves; ++i) {
    const float4 wave = waves[i];
    const float turns = wave.x * x + wave.y * y + wave.z;
    float sine, cosine;
    __sincosf(6.28318531f * (turns - rintf(turns)), &sine, &cosine);
    real += wave.w * cosine;
    imaginary += wave.w * sine;
  }
  const int i = row * columns + column;
  reinterpret_cast<float2*>(out)[i] = make_float2(real, imaginary);
}
