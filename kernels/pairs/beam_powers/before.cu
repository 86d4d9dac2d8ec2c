// Powers of beams: at each sample the complex voltages of the antennas are weighed and summed. A
// block has 16 beams, and a thread all of them at a sample.
// What is wrong: a block takes all samples and fills an SM, and there are eight blocks more than
// SMs: nearly all SMs idle half of the time.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 1024;
constexpr int kBeams = 16;
constexpr int kAntennas = 64;

__device__ __forceinline__ void add_product(float& real, float& imaginary, float w_real,
                                            float w_imaginary, float2 v) {
  real += w_real * v.x;
  real -= w_imaginary * v.y;
  imaginary += w_real * v.y;
  imaginary += w_imaginary * v.x;
}

extern "C" __global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    beam_powers(const float2* __restrict__ voltages, const float4* __restrict__ weights,
                float* __restrict__ out, int antennas, int samples, int beams) {
  __shared__ float4 tile[kAntennas][kBeams / 2];  // two beams' in each
  for (int i = threadIdx.x; i < antennas * kBeams / 2; i += kThreads) {
    const int antenna = i / (kBeams / 2);
    const int two = i % (kBeams / 2);
    tile[antenna][two] = weights[antenna * beams / 2 + blockIdx.x * (kBeams / 2) + two];
  }
  __syncthreads();

#pragma unroll 1
  for (int sample = blockIdx.y * kThreads + threadIdx.x; sample < samples;
       sample += gridDim.y * kThreads) {
    float real[kBeams] = {}, imaginary[kBeams] = {};
#pragma unroll 1
    for (int antenna = 0; antenna < antennas; ++antenna) {
      const float2 v = voltages[antenna * samples + sample];
#pragma unroll
      for (int two = 0; two < kBeams / 2; ++two) {
        const float4 w = tile[antenna][two];
        add_product(real[2 * two], imaginary[2 * two], w.x, w.y, v);
        add_product(real[2 * two + 1], imaginary[2 * two + 1], w.z, w.w, v);
      }
    }
#pragma unroll
    for (int beam = 0; beam < kBeams; ++beam) {
      out[(blockIdx.x * kBeams + beam) * samples + sample] =
          real[beam] * real[beam] + imaginary[beam] * imaginary[beam];
    }
  }
}
