// The speed of sound in the cells of a two-phase flow: air as an ideal gas whose exponent falls
// with its energy, water as a stiffened gas with a covolume. What is wrong: each fluid has its own
// branch, and as the fluids are mixed, nearly every warp goes through both.
//
// Architectures: sm_80, sm_90a.

__device__ __forceinline__ float in_air(float volume, float energy) {
  const float exponent = 1.4f - 0.0625f * energy;
  const float pressure = (exponent - 1.0f) * energy / volume;
  return sqrtf(exponent * pressure * volume);
}

__device__ __forceinline__ float in_water(float volume, float energy) {
  const float exponent = 1.25f;
  const float stiffness = 0.25f;
  const float room = volume - 0.125f;
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
  if (fluids[i] == 0) {
    out[i] = in_air(volume, energy);
  } else {
    out[i] = in_water(volume, energy);
  }
}
