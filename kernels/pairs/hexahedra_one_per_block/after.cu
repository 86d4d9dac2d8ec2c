// Element residuals of a stiffness operator on hexahedra of 27 nodes: nodal values come by index,
// derivatives are 3 by 3 matrices along each direction. A block of eight warps takes eight
// elements, a warp each.
//
// Architectures: sm_80, sm_90a.

constexpr int kNodes = 27;
constexpr int kElements = 8;  // of a block

extern "C" __global__ void __launch_bounds__(32 * kElements)
    residuals(const int* __restrict__ nodes, const float* __restrict__ values,
              const float* __restrict__ metric, const float* __restrict__ stiffness,
              float* __restrict__ out, int elements) {
  __shared__ float all[kElements][kNodes];
  const int element = blockIdx.x * kElements + threadIdx.y;
  const int node = threadIdx.x;
  float* u = all[threadIdx.y];
  if (element >= elements) return;
  if (node < kNodes) u[node] = values[nodes[element * kNodes + node]];
  __syncwarp();
  if (node >= kNodes) return;
  const int x = node % 3;
  const int y = node / 3 % 3;
  const int z = node / 9;
  float sums[3] = {};
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    sums[0] += stiffness[3 * x + k] * u[node - x + k];
    sums[1] += stiffness[3 * y + k] * u[node + 3 * (k - y)];
    sums[2] += stiffness[3 * z + k] * u[node + 9 * (k - z)];
  }
  out[element * kNodes + node] = metric[3 * element] * sums[0] + metric[3 * element + 1] * sums[1] +
                                 metric[3 * element + 2] * sums[2];
}
