// Attention on the tensor cores, in the FlashAttention-2 manner: four warps have 16 query rows
// each, and mma.sync multiplies. Q stays in registers, and so do the weights: what one product
// leaves in a thread is what the next one wants from it. Rows of the tiles in shared memory lie one
// after the other, so that the eight rows that ldmatrix reads at a time begin in the same bank.
//
// Tensors are contiguous (batch, heads, length, DIM), 16-byte aligned. Grid: batch * heads *
// ceil(length / 64).
// Architectures: sm_80, sm_90a.
// Defines: DIM, the head dimension, 64 or 128; BF16 for bfloat16 in place of float16.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef BF16
using element = __nv_bfloat16;
#else
using element = __half;
#endif

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kBlocks = DIM == 64 ? 0 : 2;  // an SM must hold, to leave the registers for; 0: any
constexpr int kRows = 16 * kWarps;
constexpr int kKeys = 64;
constexpr int kChunks = DIM / 8;  // of 16 bytes, in a row
constexpr int kRowBytes = DIM * 2;
constexpr float kLog2e = 1.44269504f;
constexpr float kLowest = -3.4e38f;
static_assert(DIM == 64 || DIM == 128, "two tiles must fit into 48 KiB of shared memory");

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

#ifdef BF16
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#endif

__device__ __forceinline__ void mma_16816(float (&d)[4], const unsigned (&a)[4],
                                          const unsigned (&b)[2]) {
  asm(MMA " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two numbers as a register of an operand, the first in its low half.
__device__ __forceinline__ unsigned pack(float low, float high) {
#ifdef BF16
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
#else
  const __half2 pair = __floats2half2_rn(low, high);
#endif
  return reinterpret_cast<const unsigned&>(pair);
}

// Where a row's chunk lies in a tile, in bytes.
__device__ __forceinline__ int place(int row, int chunk) { return (row * kChunks + chunk) * 16; }

// Rows past the length are zeros: a weight of 0 times what lies there must be 0.
__device__ __forceinline__ void load_tile(unsigned char* tile, const element* head, int first,
                                          int length) {
  const int chunk = threadIdx.x % kChunks;
#pragma unroll
  for (int row = threadIdx.x / kChunks; row < kKeys; row += kThreads / kChunks) {
    uint4 value = {};
    if (first + row < length) {
      const element* source = head + static_cast<long long>(first + row) * DIM + chunk * 8;
      value = *reinterpret_cast<const uint4*>(source);
    }
    *reinterpret_cast<uint4*>(tile + place(row, chunk)) = value;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    tensor_core(const element* __restrict__ q, const element* __restrict__ k,
                const element* __restrict__ v, element* __restrict__ out, int length, float scale,
                bool causal) {
  __shared__ __align__(128) unsigned char k_tile[kKeys * kRowBytes];
  __shared__ __align__(128) unsigned char v_tile[kKeys * kRowBytes];
  const unsigned k_address = shared_address(k_tile);
  const unsigned v_address = shared_address(v_tile);

  const int tiles = (length + kRows - 1) / kRows;
  const long long offset = static_cast<long long>(blockIdx.x / tiles) * length * DIM;
  const int first_row = blockIdx.x % tiles * kRows;

  // Of its warp's 16 rows a thread has two, eight apart, and in each group of eight columns two.
  const int lane = threadIdx.x % 32;
  const int row = first_row + threadIdx.x / 32 * 16 + lane / 4;
  const int column = lane % 4 * 2;
  const int rows[2] = {row, row + 8};

  unsigned query[DIM / 16][4];
#pragma unroll
  for (int part = 0; part < DIM / 16; ++part) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = rows[i % 2];
      const long long at = static_cast<long long>(r) * DIM + part * 16 + i / 2 * 8 + column;
      query[part][i] = r < length ? *reinterpret_cast<const unsigned*>(q + offset + at) : 0;
    }
  }

  float sum[DIM / 8][4] = {};  // of the values, weighted by exp2(factor * (score - largest))
  float largest[2] = {kLowest, kLowest};
  float weights[2] = {};  // of the thread's own columns
  const float factor = scale * kLog2e;

  const int keys = causal ? min(length, first_row + kRows) : length;
  for (int first_key = 0; first_key < keys; first_key += kKeys) {
    __syncthreads();  // the tiles of the step before are read to the end
    load_tile(k_tile, k + offset, first_key, length);
    load_tile(v_tile, v + offset, first_key, length);
    __syncthreads();

    float score[kKeys / 8][4] = {};
#pragma unroll
    for (int part = 0; part < DIM / 32; ++part) {
      const unsigned from = k_address + place(lane % 8, part * 4 + lane / 8);
#pragma unroll
      for (int group = 0; group < kKeys / 8; ++group) {
        unsigned key[4];
        ldmatrix_x4(key, from + group * 8 * kRowBytes);
        mma_16816(score[group], query[part * 2], {key[0], key[1]});
        mma_16816(score[group], query[part * 2 + 1], {key[2], key[3]});
      }
    }

#pragma unroll
    for (int group = 0; group < kKeys / 8; ++group) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = first_key + group * 8 + column + i % 2;
        if (key >= length || (causal && key > rows[i / 2])) score[group][i] = kLowest;
      }
    }

#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // Every row sees the first key of a tile that the block walks over, so the maximum is finite.
      float top = largest[half];
#pragma unroll
      for (int group = 0; group < kKeys / 8; ++group) {
        top = fmaxf(top, fmaxf(score[group][half * 2], score[group][half * 2 + 1]));
      }
      top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2));

      const float shrink = exp2f((largest[half] - top) * factor);
      largest[half] = top;
      weights[half] *= shrink;
#pragma unroll
      for (int group = 0; group < DIM / 8; ++group) {
        sum[group][half * 2] *= shrink;
        sum[group][half * 2 + 1] *= shrink;
      }
#pragma unroll
      for (int group = 0; group < kKeys / 8; ++group) {
#pragma unroll
        for (int i = half * 2; i < half * 2 + 2; ++i) {
          score[group][i] = exp2f(score[group][i] * factor - top * factor);
          weights[half] += score[group][i];
        }
      }
    }

#pragma unroll
    for (int part = 0; part < kKeys / 16; ++part) {
      const float(&low)[4] = score[part * 2];
      const float(&high)[4] = score[part * 2 + 1];
      const unsigned weight[4] = {pack(low[0], low[1]), pack(low[2], low[3]),
                                  pack(high[0], high[1]), pack(high[2], high[3])};
#pragma unroll
      for (int group = 0; group < DIM / 8; group += 2) {
        unsigned value[4];
        const unsigned from = v_address + place(lane % 16, group + lane / 16);
        ldmatrix_x4_trans(value, from + part * 16 * kRowBytes);
        mma_16816(sum[group], weight, {value[0], value[1]});
        mma_16816(sum[group + 1], weight, {value[2], value[3]});
      }
    }
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    weights[half] += __shfl_xor_sync(0xffffffff, weights[half], 1);
    weights[half] += __shfl_xor_sync(0xffffffff, weights[half], 2);
    if (rows[half] >= length) continue;
    const float share = 1.0f / weights[half];
    element* target = out + offset + static_cast<long long>(rows[half]) * DIM + column;
#pragma unroll
    for (int group = 0; group < DIM / 8; ++group) {
      *reinterpret_cast<unsigned*>(target + group * 8) =
          pack(sum[group][half * 2] * share, sum[group][half * 2 + 1] * share);
    }
  }
}
