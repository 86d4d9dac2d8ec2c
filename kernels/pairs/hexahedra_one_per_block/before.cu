// Element residuals of a stiffness operator on hexahedra of 27 nodes: nodal values come by index,
// derivatives are 3 by 3 matrices along each direction. What is wrong: a block is one element, 27
// threads, so that the limit of blocks per SM leaves half of its warps empty, and every element
// costs the launch of a block.
//
// Architectures: sm_80, sm_90a.

constexpr int kNodes = 27;

extern "C" __global__ void residuals(const int* __restrict__ nodes,
                                     const float* __restrict__ values,
                                     const float* __restrict__ metric,
                                     const float* __restrict__ stiffness, float* __restrict__ out,
                                     int elements) {
  __shared__ float u[kNodes];
  const int element = blockIdx.x;
  const int node = threadIdx.x;
  u[node] = values[nodes[element * kNodes + node]];
  __syncthreads();
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
