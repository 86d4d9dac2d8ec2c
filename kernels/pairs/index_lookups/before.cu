// Looks keys up in a tree, a warp for each: at each level the lanes compare the next five bits of
// the key with a node's 32 separators, and their count selects the child. Out is the leaf.
// What is wrong: a block is one warp, and an SM holds at most 32 blocks, half as many warps as it
// has slots for, though nothing but more warps hides the chain of loads.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 32;

extern "C" __global__ void __launch_bounds__(kThreads)
    lookups(const int* __restrict__ keys, const int* __restrict__ separators,
            const int* __restrict__ children, float* __restrict__ out, int levels) {
  const int lane = threadIdx.x % 32;
  const int lookup = (blockIdx.x * kThreads + threadIdx.x) / 32;
  const int key = keys[lookup];
  int node = lookup % 4096;  // the root of its partition
#pragma unroll 1
  for (int level = 0; level < levels; ++level) {
    const int digit = key >> 5 * level & 31;
    const unsigned below = __ballot_sync(0xffffffffu, separators[node * 32 + lane] <= digit);
    node = children[node * 32 + min(__popc(below), 31)];
  }
  if (lane == 0) out[lookup] = static_cast<float>(node);
}
