// The speed of sound in the cells of a two-phase flow: air as an ideal gas whose exponent falls
// with its energy, water as a stiffened gas with a covolume. One equation, of
// a stiffened gas with a covolume, serves both with coefficients of their own.
//
// Architectures: sm_80, sm_90a.

__device__ __forceinline__ float in_fluid(bool air, float volume, float energy) {
  const float exponent = air ? 1.4f - 0.0625f * energy : 1.25f;
  const float stiffness = air ? 0.0f : 0.25f;
  const float room = volume - (air ? 0.0f : 0.125f);
  const float pressure = (exponent - 1.0f) * energy / room - exponent * stiffness;
  return volume * sqrtf(exponent * (pressure + stiffness) / room);
}

extern "C" __global__ void sound_speeds(const float* __restrict__ volumes,
                                        const float* __restrict__ energies,
                                        const unsigned char* __restrict__ fluids,
                                        float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float volume = 0.5f + volumes[i];
  const float energy = 1.0f + energies[i];
  out[i] = in_fluid(fluids[i] == 0, volume, energy);
}
