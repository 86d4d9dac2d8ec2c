// Attention for Hopper: one producer warpgroup feeds the tensor cores through TMA, and consumer
// warpgroups of 64 query rows each overlap one tile's softmax with other tiles' matrix products.
// Architectures: sm_90a.

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

__device__ __forceinline__ void wgmma_ss(float (&d)[40], unsigned long long a,
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %42, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n80k16." WGMMA_TYPES " {"
      NAME_10() NAME_10(1) NAME_10(2) "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39"
      "}, %40, %41, p, 1, 1, 0, 0;\n}"
      : HOLD_32(d, 0), HOLD_8(d, 32)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

__device__ __forceinline__ void wgmma_ss(float (&d)[44], unsigned long long a,
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %46, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n88k16." WGMMA_TYPES " {"
      NAME_10() NAME_10(1) NAME_10(2) NAME_10(3) "%40, %41, %42, %43"
      "}, %44, %45, p, 1, 1, 0, 0;\n}"
      : HOLD_32(d, 0), HOLD_8(d, 32), HOLD_4(d, 40)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

__device__ __forceinline__ void wgmma_ss(float (&d)[48], unsigned long long a,
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %50, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n96k16." WGMMA_TYPES " {"
      NAME_10() NAME_10(1) NAME_10(2) NAME_10(3) "%40, %41, %42, %43, %44, %45, %46, %47"
      "}, %48, %49, p, 1, 1, 0, 0;\n}"
      : HOLD_32(d, 0), HOLD_8(d, 32), HOLD_8(d, 40)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

__device__ __forceinline__ void wgmma_ss(float (&d)[56], unsigned long long a,
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %58, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n112k16." WGMMA_TYPES " {"
      NAME_10() NAME_10(1) NAME_10(2) NAME_10(3) NAME_10(4) "%50, %51, %52, %53, %54, %55"
      "}, %56, %57, p, 1, 1, 0, 0;\n}"
      : HOLD_32(d, 0), HOLD_8(d, 32), HOLD_8(d, 40), HOLD_8(d, 48)
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

__device__ __forceinline__ void wgmma_ss(float (&d)[80], unsigned long long a,
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %82, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n160k16." WGMMA_TYPES " {"
      NAME_10() NAME_10(1) NAME_10(2) NAME_10(3) NAME_10(4) NAME_10(5) NAME_10(6) "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
      "}, %80, %81, p, 1, 1, 0, 0;\n}"
      : HOLD_32(d, 0), HOLD_32(d, 32), HOLD_8(d, 64), HOLD_8(d, 72)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

__device__ __forceinline__ void wgmma_ss(float (&d)[88], unsigned long long a,
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %90, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n176k16." WGMMA_TYPES " {"
      NAME_10() NAME_10(1) NAME_10(2) NAME_10(3) NAME_10(4) NAME_10(5) NAME_10(6) NAME_10(7) "%80, %81, %82, %83, %84, %85, %86, %87"
      "}, %88, %89, p, 1, 1, 0, 0;\n}"
      : HOLD_32(d, 0), HOLD_32(d, 32), HOLD_8(d, 64), HOLD_8(d, 72), HOLD_8(d, 80)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

__device__ __forceinline__ void wgmma_ss(float (&d)[96], unsigned long long a,
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16." WGMMA_TYPES " {"
      NAME_10() NAME_10(1) NAME_10(2) NAME_10(3) NAME_10(4) NAME_10(5) NAME_10(6) NAME_10(7) NAME_10(8) "%90, %91, %92, %93, %94, %95"
      "}, %96, %97, p, 1, 1, 0, 0;\n}"
      : HOLD_32(d, 0), HOLD_32(d, 32), HOLD_32(d, 64)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

__device__ __forceinline__ void wgmma_ss(float (&d)[128], unsigned long long a,
                                         unsigned long long b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16." WGMMA_TYPES " {"
      NAME_10() NAME_10(1) NAME_10(2) NAME_10(3) NAME_10(4) NAME_10(5) NAME_10(6) NAME_10(7) NAME_10(8) NAME_10(9) NAME_10(10) NAME_10(11) "%120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0;\n}"
      : HOLD_32(d, 0), HOLD_32(d, 32), HOLD_32(d, 64), HOLD_32(d, 96)
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
