// Vertical magnetic field of 4096 dipoles below the ground at the stations of a survey. A block
// takes 512 stations and keeps all dipoles in shared memory, 96 KB, so that two blocks fit into an
// SM. What is wrong: there are 300 blocks for the 264 places of 132 SMs, so that 36 blocks run
// alone at the end.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 512;

struct Dipole {
  float x, y, depth, mx, my, mz;
};

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    vertical_field(const float2* __restrict__ stations, const float* __restrict__ places,
                   const float* __restrict__ moments, float* __restrict__ out, int dipoles) {
  extern __shared__ float shared[];
  Dipole* all = reinterpret_cast<Dipole*>(shared);
  for (int i = threadIdx.x; i < dipoles; i += kThreads) {
    all[i] = {places[3 * i],  places[3 * i + 1],  1.0f + fabsf(places[3 * i + 2]),
              moments[3 * i], moments[3 * i + 1], moments[3 * i + 2]};
  }
  __syncthreads();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float2 station = stations[i];
  float sum = 0.0f;
#pragma unroll 4
  for (int k = 0; k < dipoles; ++k) {
    const Dipole d = all[k];
    const float x = station.x - d.x;
    const float y = station.y - d.y;
    const float inverse = rsqrtf(x * x + y * y + d.depth * d.depth);
    const float squared = inverse * inverse;
    const float product = d.mx * x + d.my * y + d.mz * d.depth;
    sum += (3.0f * product * d.depth * squared - d.mz) * squared * inverse;
  }
  out[i] = sum;
}
