// Attention as in swizzled.cu, with copies that run while the tensor cores work: cp.async brings
// the next tiles of K and V while the warps are at the present ones, with one barrier a step. A
// warp has STRIPS times 16 query rows, so that a fragment of K or V that it reads serves all of
// them. Work is left out where it is not needed: a mask where no tile is cut, a rescaling where no
// maximum has grown by much.
//
// Tensors are contiguous (batch, heads, length, DIM), 16-byte aligned. Grid: batch * heads *
// ceil(length / (16 * STRIPS * WARPS)). Dynamic shared memory: 8 * KEYS * DIM bytes.
// Architectures: sm_80, sm_90a.
// Defines: DIM, the head dimension, 64 or 128; BF16 for bfloat16 in place of float16; WARPS of a
// block; STRIPS of a warp; KEYS of a tile, a multiple of 16; BLOCKS that are to fit on an SM.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef BF16
using element = __nv_bfloat16;
#else
using element = __half;
#endif

constexpr int kThreads = 32 * WARPS;
constexpr int kRows = 16 * STRIPS * WARPS;
constexpr int kChunks = DIM / 8;  // of 16 bytes, in a row
constexpr int kRowBytes = DIM * 2;
constexpr int kTileBytes = KEYS * kRowBytes;
constexpr int kStageBytes = 2 * kTileBytes;  // a tile of K and one of V
constexpr float kLog2e = 1.44269504f;
constexpr float kLowest = -3.4e38f;
constexpr float kSlack = 8.0f;  // weights up to 2 to this power are as exact as those up to 1
static_assert(DIM == 64 || DIM == 128, "a row is 8 or 16 chunks");
static_assert(KEYS % 16 == 0 && KEYS % (kThreads / kChunks) == 0, "threads share a tile evenly");
static_assert(kThreads / kChunks % 8 == 0, "a thread's chunk keeps its place from row to row");

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

__device__ __forceinline__ void cp_async_16_zfill(unsigned to, const void* from, bool real) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(real ? 16 : 0)
               : "memory");
}

__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
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
__device__ __forceinline__ int place(int row, int chunk) {
  return (row * kChunks + (chunk ^ row % 8)) * 16;
}

// There are `rows` from `source` on. A tile's rows past them are zeros: a weight of 0 times what
// lies there must be 0.
__device__ __forceinline__ void load_tile(unsigned tile, const element* source, int rows) {
  const int row = threadIdx.x / kChunks;
  const int chunk = threadIdx.x % kChunks;
  const unsigned to = tile + place(row, chunk);
  const element* from = source + row * DIM + chunk * 8;
#pragma unroll
  for (int step = 0; step < KEYS; step += kThreads / kChunks) {
    cp_async_16_zfill(to + step * kRowBytes, from + step * DIM, row + step < rows);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS)
    async_pipeline(const element* __restrict__ q, const element* __restrict__ k,
                   const element* __restrict__ v, element* __restrict__ out, int length,
                   float scale, bool causal) {
  extern __shared__ uint4 shared[];  // two stages
  const unsigned stages = shared_address(shared);

  // Under a causal mask the last rows have the most keys: they start first.
  const int tiles = (length + kRows - 1) / kRows;
  const int tile = blockIdx.x % tiles;
  const long long offset = static_cast<long long>(blockIdx.x / tiles) * length * DIM;
  const int first_row = (causal ? tiles - 1 - tile : tile) * kRows;

  // Of a strip's 16 rows a thread has two, eight apart, and in each group of eight columns two.
  const int lane = threadIdx.x % 32;
  const int warp_row = first_row + threadIdx.x / 32 * STRIPS * 16;
  const int row = warp_row + lane / 4;
  const int column = lane % 4 * 2;

  const int keys = causal ? min(length, first_row + kRows) : length;
  load_tile(stages, k + offset, length);
  load_tile(stages + kTileBytes, v + offset, length);
  cp_async_commit();

  unsigned query[STRIPS][DIM / 16][4];
#pragma unroll
  for (int strip = 0; strip < STRIPS; ++strip) {
#pragma unroll
    for (int part = 0; part < DIM / 16; ++part) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = row + strip * 16 + i % 2 * 8;
        const long long at = static_cast<long long>(r) * DIM + part * 16 + i / 2 * 8 + column;
        query[strip][part][i] =
            r < length ? *reinterpret_cast<const unsigned*>(q + offset + at) : 0;
      }
    }
  }

  // Sums of the values, weighted by exp2(factor * score - origin).
  float sum[STRIPS][DIM / 8][4] = {};
  float origin[STRIPS][2];
  float weights[STRIPS][2] = {};  // of the thread's own columns
#pragma unroll
  for (int strip = 0; strip < STRIPS; ++strip) {
    origin[strip][0] = origin[strip][1] = kLowest;
  }
  const float factor = scale * kLog2e;
  const int seen_by_all = causal ? min(length, warp_row + 1) : length;

  for (int first_key = 0; first_key < keys; first_key += KEYS) {
    const int stage = first_key / KEYS % 2;
    const unsigned k_tile = stages + stage * kStageBytes;
    const unsigned v_tile = k_tile + kTileBytes;
    cp_async_wait<0>();
    __syncthreads();  // this stage's tiles have come, and the other's are read to the end
    const int next_key = first_key + KEYS;
    if (next_key < keys) {
      const unsigned next = stages + (1 - stage) * kStageBytes;
      const long long source = offset + static_cast<long long>(next_key) * DIM;
      load_tile(next, k + source, length - next_key);
      load_tile(next + kTileBytes, v + source, length - next_key);
      cp_async_commit();
    }
    if (causal && first_key >= warp_row + STRIPS * 16) continue;

    float score[STRIPS][KEYS / 8][4] = {};
#pragma unroll
    for (int part = 0; part < DIM / 32; ++part) {
      const unsigned from = k_tile + place(lane % 8, part * 4 + lane / 8);
#pragma unroll
      for (int group = 0; group < KEYS / 8; ++group) {
        unsigned key[4];
        ldmatrix_x4(key, from + group * 8 * kRowBytes);
#pragma unroll
        for (int strip = 0; strip < STRIPS; ++strip) {
          mma_16816(score[strip][group], query[strip][part * 2], {key[0], key[1]});
          mma_16816(score[strip][group], query[strip][part * 2 + 1], {key[2], key[3]});
        }
      }
    }

    if (next_key > seen_by_all) {
#pragma unroll
      for (int strip = 0; strip < STRIPS; ++strip) {
#pragma unroll
        for (int group = 0; group < KEYS / 8; ++group) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int key = first_key + group * 8 + column + i % 2;
            const int last = causal ? min(length - 1, row + strip * 16 + i / 2 * 8) : length - 1;
            if (key > last) score[strip][group][i] = kLowest;
          }
        }
      }
    }

    float top[STRIPS][2];
    bool grown = false;
#pragma unroll
    for (int strip = 0; strip < STRIPS; ++strip) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        // Every row sees the first key of all, so the maximum is finite.
        float largest = kLowest;
#pragma unroll
        for (int group = 0; group < KEYS / 8; ++group) {
          const float(&four)[4] = score[strip][group];
          largest = fmaxf(largest, fmaxf(four[half * 2], four[half * 2 + 1]));
        }
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, 2));
        top[strip][half] = fmaxf(origin[strip][half], largest * factor);
        grown |= top[strip][half] > origin[strip][half] + kSlack;
      }
    }

    if (__any_sync(0xffffffff, grown)) {
#pragma unroll
      for (int strip = 0; strip < STRIPS; ++strip) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float shrink = exp2_approx(origin[strip][half] - top[strip][half]);
          origin[strip][half] = top[strip][half];
          weights[strip][half] *= shrink;
#pragma unroll
          for (int group = 0; group < DIM / 8; ++group) {
            sum[strip][group][half * 2] *= shrink;
            sum[strip][group][half * 2 + 1] *= shrink;
          }
        }
      }
    }

#pragma unroll
    for (int strip = 0; strip < STRIPS; ++strip) {
#pragma unroll
      for (int group = 0; group < KEYS / 8; ++group) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float& weight = score[strip][group][i];
          weight = exp2_approx(fmaf(weight, factor, -origin[strip][i / 2]));
          weights[strip][i / 2] += weight;
        }
      }
    }

#pragma unroll
    for (int part = 0; part < KEYS / 16; ++part) {
      unsigned weight[STRIPS][4];
#pragma unroll
      for (int strip = 0; strip < STRIPS; ++strip) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float(&four)[4] = score[strip][part * 2 + i / 2];
          weight[strip][i] = pack(four[i % 2 * 2], four[i % 2 * 2 + 1]);
        }
      }
#pragma unroll
      for (int group = 0; group < DIM / 8; group += 2) {
        unsigned value[4];
        const unsigned from = v_tile + place(lane % 16, group + lane / 16);
        ldmatrix_x4_trans(value, from + part * 16 * kRowBytes);
#pragma unroll
        for (int strip = 0; strip < STRIPS; ++strip) {
          mma_16816(sum[strip][group], weight[strip], {value[0], value[1]});
          mma_16816(sum[strip][group + 1], weight[strip], {value[2], value[3]});
        }
      }
    }
  }

#pragma unroll
  for (int strip = 0; strip < STRIPS; ++strip) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = weights[strip][half];
      total += __shfl_xor_sync(0xffffffff, total, 1);
      total += __shfl_xor_sync(0xffffffff, total, 2);
      const int r = row + strip * 16 + half * 8;
      if (r >= length) continue;
      const float share = 1.0f / total;
      element* target = out + offset + static_cast<long long>(r) * DIM + column;
#pragma unroll
      for (int group = 0; group < DIM / 8; ++group) {
        const float(&four)[4] = sum[strip][group];
        *reinterpret_cast<unsigned*>(target + group * 8) =
            pack(four[half * 2] * share, four[half * 2 + 1] * share);
      }
    }
  }
}
