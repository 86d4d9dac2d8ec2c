// Attention for Hopper. A persistent block walks over tiles of query rows: one producer warpgroup
// keeps K and V coming through TMA, and each consumer warpgroup does 64 rows with wgmma. Scores,
// weights and sums stay in registers. While a consumer's softmax is at work, the tensor cores have
// its own earlier products and the other consumers' to do.
// Architectures: sm_90a.
//
// Tensors are contiguous (heads, length, DIM), seen through tensor maps: boxes of 64 columns and
// as many rows as a tile has, swizzled by 128 bytes. Grid: any. Block: 128 * (1 + CONSUMERS).
// Defines: DIM, 64 or 128; BF16 for bfloat16 in place of float16; CONSUMERS; BLOCK_N, the keys of a
// tile, 64 or 128; STAGES of K and of V; Q_STAGES.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

// One PTX instruction each.

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void mbarrier_init(unsigned barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised mbarriers visible to the TMA unit.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and lets the phase wait for that many bytes of TMA loads as well.
__device__ __forceinline__ void mbarrier_arrive_expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Whether the phase of that parity is over; may suspend the thread for a while before it says no.
__device__ __forceinline__ bool mbarrier_passed(unsigned barrier, unsigned parity) {
  unsigned passed;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(passed)
      : "r"(barrier), "r"(parity)
      : "memory");
  return passed != 0;
}

__device__ __forceinline__ void prefetch_tensor_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Loads the box at (x, y, z) into shared memory and counts its bytes at the mbarrier.
__device__ __forceinline__ void tma_load_3d(unsigned to, const TensorMap* map, int x, int y, int z,
                                            unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

// Stores the box at (x, y, z) from shared memory; what lies outside the tensor is left out.
__device__ __forceinline__ void tma_store_3d(const TensorMap* map, int x, int y, int z,
                                             unsigned from) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(
          map),
      "r"(x), "r"(y), "r"(z), "r"(from)
      : "memory");
}

__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until this thread's stores have read their shared memory.
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Makes ordinary writes to shared memory visible to TMA and wgmma.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void named_barrier_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Arrives without waiting.
__device__ __forceinline__ void named_barrier_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

template <int kRegisters>
__device__ __forceinline__ void registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

template <int kRegisters>
__device__ __forceinline__ void registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Orders a warpgroup's register writes before its next wgmma.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most kPending of the latest groups are unfinished.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// No instruction: keeps the compiler from moving uses of an accumulator across a wait.
template <int kCount>
__device__ __forceinline__ void hold(float (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

__device__ __forceinline__ float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#ifdef BF16
#define WGMMA_TYPES "f32.bf16.bf16"
#else
#define WGMMA_TYPES "f32.f16.f16"
#endif
#define NAME_10(tens)                                                                      \
  "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" \
  #tens "7, %" #tens "8, %" #tens "9, "
#define HOLD_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define HOLD_8(d, i) HOLD_4(d, i), HOLD_4(d, i + 4)
#define HOLD_32(d, i) HOLD_8(d, i), HOLD_8(d, i + 8), HOLD_8(d, i + 16), HOLD_8(d, i + 24)

// wgmma_ss: d (+)= A B^T for A of 64 rows by 16 and B of N rows by 16, both in shared memory with
// the 16 contiguous (K-major); d holds N / 2 accumulators a thread. `accumulate` false: d = A B^T.
// wgmma_rs: d (+)= A B for A of 64 rows by 16 in registers and B of 16 rows by N in shared memory
// with the N contiguous (transposed, MN-major).

__device__ __forceinline__ void wgmma_ss(float (&d)[32], unsigned long long a,
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16." WGMMA_TYPES " {"
      NAME_10() NAME_10(1) NAME_10(2) "%30, %31"
      "}, %32, %33, p, 1, 1, 0, 0;\n}"
      : HOLD_32(d, 0)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

__device__ __forceinline__ void wgmma_ss(float (&d)[64], unsigned long long a,
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16." WGMMA_TYPES " {"
      NAME_10() NAME_10(1) NAME_10(2) NAME_10(3) NAME_10(4) NAME_10(5) "%60, %61, %62, %63"
      "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : HOLD_32(d, 0), HOLD_32(d, 32)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

__device__ __forceinline__ void wgmma_rs(float (&d)[32], const unsigned (&a)[4],
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16." WGMMA_TYPES " {"
      NAME_10() NAME_10(1) NAME_10(2) "%30, %31"
      "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"
      : HOLD_32(d, 0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)));
}

__device__ __forceinline__ void wgmma_rs(float (&d)[64], const unsigned (&a)[4],
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16." WGMMA_TYPES " {"
      NAME_10() NAME_10(1) NAME_10(2) NAME_10(3) NAME_10(4) NAME_10(5) "%60, %61, %62, %63"
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}"
      : HOLD_32(d, 0), HOLD_32(d, 32)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)));
}

#ifdef BF16
using element = __nv_bfloat16;
#else
using element = __half;
#endif

constexpr float kLowest = -3.4e38f;
constexpr float kRescaleAbove = 8.0f;  // weights stay below 2^8, exact enough in 32 bits
constexpr int kWarpgroup = 128;        // threads
constexpr int kRows = 64 * CONSUMERS;
constexpr int kThreads = kWarpgroup * (1 + CONSUMERS);
constexpr int kSwizzled = 128;  // bytes of a row in shared memory: 64 elements, swizzled
constexpr int kParts = DIM / 64;
constexpr int kScores = BLOCK_N / 2;  // registers of a thread: scores, of 64 by BLOCK_N
constexpr int kSums = DIM / 2;      // weighted sums, of 64 by DIM
constexpr unsigned kQPart = kRows * kSwizzled;
constexpr unsigned kKvPart = BLOCK_N * kSwizzled;
constexpr unsigned kOutPart = 64 * kSwizzled;
constexpr unsigned kAlignment = 1024;  // of a swizzled tile

constexpr unsigned kQ = 0;
constexpr unsigned kK = kQ + Q_STAGES * kParts * kQPart;
constexpr unsigned kV = kK + STAGES * kParts * kKvPart;
constexpr unsigned kOut = kV + STAGES * kParts * kKvPart;

// What a thread may hold at launch, and how a block's registers are shared out after it.
constexpr int kRegisters = 65536 / kThreads / 8 * 8;
constexpr int kProducerRegisters = 24;
constexpr int kConsumerRegisters =
    (kRegisters * kThreads - kProducerRegisters * kWarpgroup) / (kWarpgroup * CONSUMERS) / 8 * 8;

static_assert(CONSUMERS >= 2 && CONSUMERS <= 4, "turns need two, registers at most four");
static_assert(DIM == 64 || DIM == 128, "a row is one or two swizzled parts");
static_assert(BLOCK_N == 64 || BLOCK_N == 128, "as wgmma_ss has it");
static_assert(STAGES >= 2, "a consumer holds V while it waits for the next K");

// Named barriers; 0 is __syncthreads.
constexpr int kTurn = 1;                           // + consumer: it may queue its products
constexpr int kWarpgroupOnly = kTurn + CONSUMERS;  // + consumer

struct Barriers {
  unsigned long long q_full[Q_STAGES], q_empty[Q_STAGES];
  unsigned long long k_full[STAGES], k_empty[STAGES];
  unsigned long long v_full[STAGES], v_empty[STAGES];
};

// A place in a ring of stages, and the parity of the phase that is the next to end there.
template <int kStages>
struct Ring {
  int stage = 0;
  unsigned parity = 0;
  __device__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

struct Tile {
  int head, first_row, steps;
};

// Heads are taken `group` at a time, so that their K and V stay in the L2 cache. When causal, a
// group's last rows, which see the most keys, come first. When not, only the last block of a head
// may be short: it is the first, second, ... of its head in turn, so that no SM gets them all.
__device__ Tile tile_at(int index, int length, int heads, int group, bool causal) {
  const int blocks = (length + kRows - 1) / kRows;
  const int first_head = index / (group * blocks) * group;
  const int in_group = index % (group * blocks);
  const int together = min(group, heads - first_head);
  const int head = first_head + in_group % together;
  const int nth = in_group / together;
  const int first_row = (causal ? blocks - 1 - nth : (nth + head) % blocks) * kRows;
  const int keys = causal ? min(length, first_row + kRows) : length;
  return {head, first_row, (keys + BLOCK_N - 1) / BLOCK_N};
}

__device__ __forceinline__ void wait(const unsigned long long& barrier, unsigned parity) {
  const unsigned address = shared_address(&barrier);
  while (!mbarrier_passed(address, parity)) {
  }
}

// Each warp of the consumers gives a stage back.
__device__ __forceinline__ void release(const unsigned long long& barrier) {
  if (threadIdx.x % 32 == 0) mbarrier_arrive(shared_address(&barrier));
}

__device__ __forceinline__ void load(unsigned to, unsigned part, const TensorMap& map, int row,
                                     int head, const unsigned long long& barrier) {
  const unsigned full = shared_address(&barrier);
  mbarrier_arrive_expect(full, kParts * part);
#pragma unroll
  for (int i = 0; i < kParts; ++i) tma_load_3d(to + i * part, &map, 64 * i, row, head, full);
}

// A tile in shared memory as wgmma takes it: swizzled by 128 bytes, 1024 bytes from 8 rows to the
// next, `part` bytes from 64 columns to the next.
__device__ __forceinline__ unsigned long long descriptor(unsigned address, unsigned part) {
  return 1ull << 62 | static_cast<unsigned long long>(kAlignment >> 4) << 32 |
         static_cast<unsigned long long>(part >> 4) << 16 | (address & 0x3ffff) >> 4;
}

// s = Q K^T, queued.
__device__ __forceinline__ void multiply_scores(float (&s)[kScores], unsigned q, unsigned k) {
  const unsigned long long q_rows = descriptor(q, kQPart);
  const unsigned long long k_rows = descriptor(k, kKvPart);
#pragma unroll
  for (int i = 0; i < DIM / 16; ++i) {
    const unsigned column = i % 4 * 32;
    wgmma_ss(s, q_rows + ((i / 4 * kQPart + column) >> 4),
             k_rows + ((i / 4 * kKvPart + column) >> 4), i > 0);
  }
}

// sums += P V, queued.
__device__ __forceinline__ void multiply_values(float (&sums)[kSums],
                                                const unsigned (&p)[BLOCK_N / 16][4], unsigned v) {
  const unsigned long long v_rows = descriptor(v, kKvPart);
#pragma unroll
  for (int i = 0; i < BLOCK_N / 16; ++i) {
    wgmma_rs(sums, p[i], v_rows + (i * 16 * kSwizzled >> 4), true);
  }
}

// What a thread knows of the softmax of its two rows, which four lanes share.
struct Rows {
  float largest[2];  // as of the scores' current reference
  float weights[2];  // sum over this lane's keys
  int last_key[2];
};

// Scores of keys that a row does not see become too low to weigh anything.
__device__ __forceinline__ void mask(float (&s)[kScores], const Rows& rows, int first_key) {
  const int key = first_key + threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < kScores; ++i) {
    const int row = i / 2 % 2;
    if (key + i / 4 * 8 + i % 2 > rows.last_key[row]) s[i] = kLowest;
  }
}

// Turns scores into weights 2^(factor * (score - largest)). A row's reference follows its largest
// score only when that has outgrown it by kRescaleAbove powers of two; then true, and `shrink` is
// what its earlier sums must be multiplied by.
__device__ __forceinline__ bool exponentiate(float (&s)[kScores], Rows& rows, float (&shrink)[2],
                                             float factor) {
  float part[4] = {s[0], s[1], s[2], s[3]};
#pragma unroll
  for (int i = 4; i < kScores; ++i) part[i % 4] = fmaxf(part[i % 4], s[i]);
  float largest[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    largest[row] = fmaxf(part[2 * row], part[2 * row + 1]);
    largest[row] = fmaxf(largest[row], __shfl_xor_sync(~0u, largest[row], 1));
    largest[row] = fmaxf(largest[row], __shfl_xor_sync(~0u, largest[row], 2));
    largest[row] = fmaxf(largest[row], rows.largest[row]);
  }

  const bool outgrown = (largest[0] - rows.largest[0]) * factor > kRescaleAbove ||
                        (largest[1] - rows.largest[1]) * factor > kRescaleAbove;
  const bool rescale = __any_sync(~0u, outgrown);
  if (rescale) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      shrink[row] = exp2_approximate((rows.largest[row] - largest[row]) * factor);
      rows.weights[row] *= shrink[row];
      rows.largest[row] = largest[row];
    }
  }

  const float reference[2] = {rows.largest[0] * factor, rows.largest[1] * factor};
  float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
  for (int i = 0; i < kScores; ++i) {
    const float x = fmaf(s[i], factor, -reference[i / 2 % 2]);
    s[i] = exp2_approximate(x);
    sum[i % 4] += s[i];
  }
  rows.weights[0] += sum[0] + sum[1];
  rows.weights[1] += sum[2] + sum[3];
  return rescale;
}

__device__ __forceinline__ void rescale(float (&sums)[kSums], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) sums[i] *= factor[i / 2 % 2];
}

__device__ __forceinline__ unsigned pack(float low, float high) {
#ifdef BF16
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
#else
  const __half2 pair = __floats2half2_rn(low, high);
#endif
  return reinterpret_cast<const unsigned&>(pair);
}

// An accumulator's layout is that of wgmma's A operand, but for the pairs.
__device__ __forceinline__ void pack_weights(unsigned (&p)[BLOCK_N / 16][4],
                                             const float (&s)[kScores]) {
#pragma unroll
  for (int i = 0; i < kScores / 2; ++i) p[i / 4][i % 4] = pack(s[2 * i], s[2 * i + 1]);
}

struct Problem {
  const TensorMap *q, *k, *v, *out;
  int length, heads, group, tiles;
  float scale;
  bool causal;
};

__device__ __forceinline__ void produce(const Problem& problem, unsigned tiles,
                                        Barriers& barriers) {
  Ring<Q_STAGES> q;
  Ring<STAGES> kv;
  for (int index = blockIdx.x; index < problem.tiles; index += gridDim.x) {
    const Tile tile =
        tile_at(index, problem.length, problem.heads, problem.group, problem.causal);
    wait(barriers.q_empty[q.stage], q.parity ^ 1);
    load(tiles + kQ + q.stage * kParts * kQPart, kQPart, *problem.q, tile.first_row, tile.head,
         barriers.q_full[q.stage]);
    q.advance();
    for (int step = 0; step < tile.steps; ++step) {
      const unsigned offset = kv.stage * kParts * kKvPart;
      wait(barriers.k_empty[kv.stage], kv.parity ^ 1);
      load(tiles + kK + offset, kKvPart, *problem.k, step * BLOCK_N, tile.head,
           barriers.k_full[kv.stage]);
      wait(barriers.v_empty[kv.stage], kv.parity ^ 1);
      load(tiles + kV + offset, kKvPart, *problem.v, step * BLOCK_N, tile.head,
           barriers.v_full[kv.stage]);
      kv.advance();
    }
  }
}

// Writes a warpgroup's 64 rows, from registers by way of shared memory.
__device__ __forceinline__ void store(const float (&sums)[kSums], Rows& rows, unsigned char* staged,
                                      const TensorMap& map, int row, int head, int barrier) {
  const int thread = threadIdx.x % kWarpgroup;
  const int lane = thread % 32;
  float inverse[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float weights = rows.weights[i];
    weights += __shfl_xor_sync(~0u, weights, 1);
    weights += __shfl_xor_sync(~0u, weights, 2);
    inverse[i] = 1.0f / weights;
  }

  if (thread == 0) tma_store_wait_read();
  named_barrier_sync(barrier, kWarpgroup);
  unsigned char* const own = staged + (thread / 32 * 16 + lane / 4) * kSwizzled + lane % 4 * 4;
#pragma unroll
  for (int i = 0; i < kSums / 4; ++i) {
    unsigned char* const to = own + i / 8 * kOutPart + ((i % 8 ^ lane / 4) << 4);
    *reinterpret_cast<unsigned*>(to) =
        pack(sums[4 * i] * inverse[0], sums[4 * i + 1] * inverse[0]);
    *reinterpret_cast<unsigned*>(to + 8 * kSwizzled) =
        pack(sums[4 * i + 2] * inverse[1], sums[4 * i + 3] * inverse[1]);
  }
  fence_proxy_async();
  named_barrier_sync(barrier, kWarpgroup);
  if (thread == 0) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      tma_store_3d(&map, 64 * i, row, head, shared_address(staged) + i * kOutPart);
    }
    tma_store_commit();
  }
}

// The consumers queue their products in turn, so that one's softmax runs under another's products.
__device__ __forceinline__ void await_turn(int consumer) {
  named_barrier_sync(kTurn + consumer, 2 * kWarpgroup);
}

__device__ __forceinline__ void pass_turn(int consumer) {
  const int next = consumer + 1 < CONSUMERS ? consumer + 1 : 0;
  named_barrier_arrive(kTurn + next, 2 * kWarpgroup);
}

__device__ __forceinline__ void consume(const Problem& problem, unsigned char* memory,
                                        Barriers& barriers, int consumer) {
  const unsigned tiles = shared_address(memory);
  const unsigned own_q = tiles + kQ + consumer * 64 * kSwizzled;
  unsigned char* const staged = memory + kOut + consumer * kParts * kOutPart;
  const float factor = problem.scale * 1.44269504f;
  const int row = threadIdx.x % kWarpgroup / 32 * 16 + threadIdx.x % 32 / 4;

  Ring<Q_STAGES> q;
  Ring<STAGES> kv, v;  // v is still at the tile whose last P V is to be queued
  float scores[kScores];
  float sums[kSums];
  unsigned p[BLOCK_N / 16][4];
  float shrink[2];

  if (consumer == CONSUMERS - 1) pass_turn(consumer);
  for (int index = blockIdx.x; index < problem.tiles; index += gridDim.x) {
    const Tile tile =
        tile_at(index, problem.length, problem.heads, problem.group, problem.causal);
    const int first_row = tile.first_row + consumer * 64;
    const unsigned q_rows = own_q + q.stage * kParts * kQPart;
    wait(barriers.q_full[q.stage], q.parity);

    if (first_row >= problem.length) {  // no rows here: only give back what the others need
      for (int step = 0; step < tile.steps; ++step) {
        await_turn(consumer);
        pass_turn(consumer);
        wait(barriers.k_full[kv.stage], kv.parity);
        release(barriers.k_empty[kv.stage]);
        wait(barriers.v_full[kv.stage], kv.parity);
        release(barriers.v_empty[kv.stage]);
        kv.advance();
        v.advance();
      }
      release(barriers.q_empty[q.stage]);
      q.advance();
      continue;
    }

    // The largest key that the first row sees: up to it, tiles need no mask.
    const int seen_by_all = problem.causal ? min(problem.length, first_row + 1) : problem.length;
    Rows rows = {{kLowest, kLowest}, {0.0f, 0.0f}, {}};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int last = problem.length - 1;
      rows.last_key[i] = problem.causal ? min(first_row + row + 8 * i, last) : last;
    }
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] = 0.0f;

    const auto queue_scores = [&] {
      wgmma_fence();
      multiply_scores(scores, q_rows, tiles + kK + kv.stage * kParts * kKvPart);
      wgmma_commit();
    };
    const auto queue_values = [&] {
      wgmma_fence();
      multiply_values(sums, p, tiles + kV + v.stage * kParts * kKvPart);
      wgmma_commit();
    };
    // The scores of a tile of keys are queued before P V of the tile before, which runs while their
    // softmax does.
    const auto take_tile = [&](int step, bool first) {
      wait(barriers.k_full[kv.stage], kv.parity);
      await_turn(consumer);
      queue_scores();
      if (!first) queue_values();
      pass_turn(consumer);
      if (first) {
        wgmma_wait<0>();
      } else {
        wgmma_wait<1>();
      }
      hold(scores);
      release(barriers.k_empty[kv.stage]);
      const int first_key = step * BLOCK_N;
      if (first_key + BLOCK_N > seen_by_all) mask(scores, rows, first_key);
      const bool shrinks = exponentiate(scores, rows, shrink, factor);

      // ptxas moves wgmma_wait up over the softmax, but not over a loop that needs its result:
      // no row's weights are negative.
      const bool negative = __any_sync(~0u, rows.weights[0] + rows.weights[1] < 0.0f);
      wait(barriers.v_full[kv.stage], kv.parity ^ negative);
      wgmma_wait<0>();
      hold(sums);
      if (!first) {
        release(barriers.v_empty[v.stage]);
        v.advance();
        if (shrinks) rescale(sums, shrink);
      }
      pack_weights(p, scores);
      kv.advance();
    };

    take_tile(0, true);
    for (int step = 1; step < tile.steps; ++step) take_tile(step, false);
    release(barriers.q_empty[q.stage]);
    q.advance();
    queue_values();
    wgmma_wait<0>();
    hold(sums);
    release(barriers.v_empty[v.stage]);
    v.advance();

    store(sums, rows, staged, *problem.out, first_row, tile.head, kWarpgroupOnly + consumer);
  }
  if (threadIdx.x % kWarpgroup == 0) tma_store_wait_read();
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    hopper(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
           const __grid_constant__ TensorMap v_map, const __grid_constant__ TensorMap out_map,
           int length, int heads, int group, float scale, bool causal) {
  extern __shared__ unsigned char memory[];
  __shared__ Barriers barriers;
  const unsigned misaligned = shared_address(memory) % kAlignment;
  unsigned char* const tiles = memory + (misaligned ? kAlignment - misaligned : 0);
  const Problem problem = {&q_map, &k_map, &v_map, &out_map, length, heads, group,
                           (length + kRows - 1) / kRows * heads, scale, causal};

  if (threadIdx.x == 0) {
    prefetch_tensor_map(&q_map);
    prefetch_tensor_map(&k_map);
    prefetch_tensor_map(&v_map);
    prefetch_tensor_map(&out_map);
    constexpr unsigned kConsumerWarps = 4 * CONSUMERS;
    for (int i = 0; i < Q_STAGES; ++i) {
      mbarrier_init(shared_address(&barriers.q_full[i]), 1);
      mbarrier_init(shared_address(&barriers.q_empty[i]), kConsumerWarps);
    }
    for (int i = 0; i < STAGES; ++i) {
      mbarrier_init(shared_address(&barriers.k_full[i]), 1);
      mbarrier_init(shared_address(&barriers.k_empty[i]), kConsumerWarps);
      mbarrier_init(shared_address(&barriers.v_full[i]), 1);
      mbarrier_init(shared_address(&barriers.v_empty[i]), kConsumerWarps);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  const int warpgroup = __shfl_sync(~0u, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    registers_down<kProducerRegisters>();
    if (threadIdx.x == 0) produce(problem, shared_address(tiles), barriers);
  } else {
    registers_up<kConsumerRegisters>();
    consume(problem, tiles, barriers, warpgroup - 1);
  }
}
