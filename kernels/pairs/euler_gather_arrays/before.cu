// Residuals of the Euler equations on an unstructured mesh of tetrahedra: a thread sums the fluxes
// through the four faces of its cell. Density and energy are stored as differences from 1 and 4.
// What is wrong: each of the five variables is an array of its own, so that every neighbor costs
// five memory sectors of which four bytes each are used.
//
// Architectures: sm_80, sm_90a.

struct State {
  float density, x, y, z, energy;
};

__device__ __forceinline__ State load(const float* __restrict__ variables, int cell, int cells) {
  State s;
  s.density = 1.0f + variables[cell];
  s.x = variables[cells + cell];
  s.y = variables[2 * cells + cell];
  s.z = variables[3 * cells + cell];
  s.energy = 4.0f + variables[4 * cells + cell];
  return s;
}

struct Flow {
  float u, v, w, pressure, speed;
};

__device__ __forceinline__ Flow flow(const State& s) {
  const float inverse = 1.0f / s.density;
  Flow f;
  f.u = s.x * inverse;
  f.v = s.y * inverse;
  f.w = s.z * inverse;
  f.pressure = 0.4f * (s.energy - 0.5f * (s.x * f.u + s.y * f.v + s.z * f.w));
  f.speed = sqrtf(f.u * f.u + f.v * f.v + f.w * f.w) + sqrtf(1.4f * f.pressure * inverse);
  return f;
}

extern "C" __global__ void residuals(const float* __restrict__ variables,
                                     const int* __restrict__ neighbors,
                                     const float* __restrict__ normals, float* __restrict__ out,
                                     int cells) {
  const int cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell >= cells) return;
  const State a = load(variables, cell, cells);
  const Flow fa = flow(a);
  State sum = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
  for (int face = 0; face < 4; ++face) {
    const State b = load(variables, neighbors[face * cells + cell], cells);
    const Flow fb = flow(b);
    const float nx = normals[(face * 3 + 0) * cells + cell];
    const float ny = normals[(face * 3 + 1) * cells + cell];
    const float nz = normals[(face * 3 + 2) * cells + cell];
    const float area = sqrtf(nx * nx + ny * ny + nz * nz);
    const float va = 0.5f * (nx * fa.u + ny * fa.v + nz * fa.w);
    const float vb = 0.5f * (nx * fb.u + ny * fb.v + nz * fb.w);
    const float pressure = 0.5f * (fa.pressure + fb.pressure);
    const float viscosity = 0.25f * area * (fa.speed + fb.speed);
    sum.density += va * a.density + vb * b.density - viscosity * (b.density - a.density);
    sum.x += va * a.x + vb * b.x + nx * pressure - viscosity * (b.x - a.x);
    sum.y += va * a.y + vb * b.y + ny * pressure - viscosity * (b.y - a.y);
    sum.z += va * a.z + vb * b.z + nz * pressure - viscosity * (b.z - a.z);
    sum.energy += va * (a.energy + fa.pressure) + vb * (b.energy + fb.pressure) -
                  viscosity * (b.energy - a.energy);
  }
  out[cell] = sum.density;
  out[cells + cell] = sum.x;
  out[2 * cells + cell] = sum.y;
  out[3 * cells + cell] = sum.z;
  out[4 * cells + cell] = sum.energy;
}
