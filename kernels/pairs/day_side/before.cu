// Sunlight that columns of air absorb: in each of 64 layers and four bands a part of the beam. The
// columns are sorted by longitude, and the sun stands above longitude zero.
// What is wrong: a block takes neighboring columns, a part of the longitudes. Blocks on the night
// side are done at once, and their SMs idle.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 1024;
constexpr int kLayers = 64;

extern "C" __global__ void __launch_bounds__(kThreads)
    sunlight(const float* __restrict__ albedos, const float4* __restrict__ depths,
             float* __restrict__ out, int columns, int passes) {
  __shared__ float4 layers[kLayers];
  if (threadIdx.x < kLayers) layers[threadIdx.x] = depths[threadIdx.x];
  __syncthreads();

#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    const int column = (blockIdx.x * passes + pass) * kThreads + threadIdx.x;
    // Twice the distance from midnight, as a part of the circle: 1 at noon.
    const float height = 1.0f - fabsf(2.0f * column / columns - 1.0f);
    const float slant = 2.0f * height - 1.0f;  // the sun's, about its cosine
    float absorbed = 0.0f;
    if (slant > 0.0f) {
      const float path = -1.0f / (slant + 0.05f);
      const float kept = 1.0f - 0.1f * albedos[column];
      float beam = slant;
#pragma unroll 2
      for (int layer = 0; layer < kLayers; ++layer) {
        const float4 depth = layers[layer];
        const float through = expf(0.05f * path * depth.x) + expf(0.04f * path * depth.y) +
                              expf(0.02f * path * depth.z) + expf(0.01f * path * depth.w);
        const float left = beam * 0.25f * through;
        absorbed += (beam - left) * kept;
        beam = left;
      }
    }
    out[column] = absorbed;
  }
}
