// Soft shadows in a height field: from each pixel a ray steps to the sun, as far at a time as the
// cell that it is in is clear. A cell is 8 by 8 pixels; positions are in 1/256 of a pixel.
// What is wrong: the kernel can also shade layered materials, whose 32 wavelengths take four values
// each. They are in registers, as many for every pixel of a scene without such materials.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kWavelengths = 32;
constexpr int kCells = 1024;  // a side

__device__ __forceinline__ float layered(float light, int layers, float film) {
  float real[kWavelengths], imaginary[kWavelengths], cosine[kWavelengths], sine[kWavelengths];
#pragma unroll
  for (int w = 0; w < kWavelengths; ++w) {
    const float phase = film * (1.0f + 0.03f * w) + light;
    cosine[w] = cosf(phase);
    sine[w] = sinf(phase);
    real[w] = light;
    imaginary[w] = 0.0f;
  }
#pragma unroll 1
  for (int layer = 0; layer < layers; ++layer) {
#pragma unroll
    for (int w = 0; w < kWavelengths; ++w) {
      const float turned = real[w] * cosine[w] - imaginary[w] * sine[w];
      imaginary[w] = 0.9f * (real[w] * sine[w] + imaginary[w] * cosine[w]);
      real[w] = 0.9f * turned + 0.1f * light;
    }
  }
  float sum = 0.0f;
#pragma unroll
  for (int w = 0; w < kWavelengths; ++w) {
    sum += real[w] * real[w] + imaginary[w] * imaginary[w];
  }
  return sum / kWavelengths;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    shade(const int* __restrict__ clearances, float* __restrict__ out, int width, int dx, int dy,
          int steps, int layers, float film) {
  const int column = blockIdx.x * 32 + threadIdx.x % 32;
  const int row = blockIdx.y * 8 + threadIdx.x / 32;
  int x = column * 256;
  int y = row * 256;
  int clear = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const int cell_x = x / (256 * 8) % kCells;
    const int cell_y = y / (256 * 8) % kCells;
    const int clearance = clearances[cell_y * kCells + cell_x];
    clear += clearance;
    x += dx * clearance;
    y += dy * clearance;
  }
  float brightness = 1.0f - expf(-0.01f * clear);
  if (layers > 0) brightness = layered(brightness, layers, film);
  out[row * width + column] = brightness;
}
