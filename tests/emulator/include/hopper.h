// Stand-ins for the functions of Hopper's asynchronous instructions: mbarriers, TMA, wgmma.
//
// What is asynchronous is done when no thread can go on without it. Until then a TMA load's target
// and a wgmma's accumulators are poisoned and nobody may write there; what a wgmma or a TMA store
// reads must be the same when it is issued and when it is done.
#pragma once

#include <ptx.h>

namespace emulator {

// ---- Barriers and registers

// PTX: bar.sync|barrier.sync
inline void named_barrier_sync(int barrier, int threads, LINE) {
  barrier_arrive("bar.sync", barrier, threads, false, true, line);
}
// PTX: bar.arrive|barrier.arrive
inline void named_barrier_arrive(int barrier, int threads, LINE) {
  barrier_arrive("bar.arrive", barrier, threads, false, false, line);
}

template <int kRegisters>
void set_registers(int line) {
  static_assert(kRegisters % 8 == 0 && 24 <= kRegisters && kRegisters <= 256,
                "setmaxnreg takes multiples of 8 from 24 to 256");
  aligned_collective("setmaxnreg", nullptr, no_exchange, line, kWarpgroup);
}
// PTX: setmaxnreg.dec.sync.aligned.u32
template <int kRegisters>
inline void registers_down(LINE) {
  set_registers<kRegisters>(line);
}
// PTX: setmaxnreg.inc.sync.aligned.u32
template <int kRegisters>
inline void registers_up(LINE) {
  set_registers<kRegisters>(line);
}

// ---- mbarriers

// PTX: mbarrier.init.shared
void mbarrier_init(unsigned barrier, unsigned arrivals, LINE);
// PTX: fence.mbarrier_init.release.cluster
inline void fence_mbarrier_init() {}

// PTX: mbarrier.arrive.shared
void mbarrier_arrive(unsigned barrier, LINE);
// PTX: mbarrier.arrive.expect_tx.shared
void mbarrier_arrive_expect(unsigned barrier, unsigned bytes, LINE);
// PTX: mbarrier.try_wait.parity.shared
bool mbarrier_passed(unsigned barrier, unsigned parity, LINE);

// ---- TMA

void tma_load(unsigned to, const void* map, std::initializer_list<int> first, unsigned barrier,
              int line);
void tma_store(const void* map, std::initializer_list<int> first, unsigned from, int line);

// PTX: prefetch.tensormap
void prefetch_tensor_map(const void* map, LINE);
// PTX: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
inline void tma_load_2d(unsigned to, const void* map, int x, int y, unsigned barrier, LINE) {
  tma_load(to, map, {x, y}, barrier, line);
}
// PTX: cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
inline void tma_load_3d(unsigned to, const void* map, int x, int y, int z, unsigned barrier, LINE) {
  tma_load(to, map, {x, y, z}, barrier, line);
}
// PTX: cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
inline void tma_load_4d(unsigned to, const void* map, int x, int y, int z, int w, unsigned barrier,
                        LINE) {
  tma_load(to, map, {x, y, z, w}, barrier, line);
}
// PTX: fence.proxy.async
void fence_proxy_async();
// PTX: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
inline void tma_store_2d(const void* map, int x, int y, unsigned from, LINE) {
  tma_store(map, {x, y}, from, line);
}
// PTX: cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group
inline void tma_store_3d(const void* map, int x, int y, int z, unsigned from, LINE) {
  tma_store(map, {x, y, z}, from, line);
}
// PTX: cp.async.bulk.commit_group
void tma_store_commit();
// PTX: cp.async.bulk.wait_group.read
void tma_store_wait_read();

// ---- wgmma

struct Issue {  // one thread's part of a wgmma
  float* d;
  const unsigned* a_registers;  // or null
  unsigned long long a, b;
  bool accumulate, b_transposed, bf16;
  int columns, line;
};

void wgmma(Issue& issue);
void wait_for_products(unsigned pending, int line);

// d (+)= A B^T, both in shared memory and K-major.
// PTX: wgmma.mma_async.sync.aligned.m64n k16. f32.bf16.bf16|f32.f16.f16
template <int N>
inline void wgmma_ss(float (&d)[N], unsigned long long a, unsigned long long b, bool accumulate,
                     LINE) {
  static_assert(N % 4 == 0 && N <= 128, "a wgmma has 8 to 256 columns, by eights");
  Issue issue = {d, nullptr, a, b, accumulate, false, kBf16, 2 * N, line};
  wgmma(issue);
}
// d (+)= A B, A in registers, B in shared memory and MN-major.
// PTX: wgmma.mma_async.sync.aligned.m64n k16. f32.bf16.bf16|f32.f16.f16
template <int N>
inline void wgmma_rs(float (&d)[N], const unsigned (&a)[4], unsigned long long b, bool accumulate,
                     LINE) {
  static_assert(N % 4 == 0 && N <= 128, "a wgmma has 8 to 256 columns, by eights");
  Issue issue = {d, a, 0, b, accumulate, true, kBf16, 2 * N, line};
  wgmma(issue);
}
// PTX: wgmma.fence.sync.aligned
void wgmma_fence();
// PTX: wgmma.commit_group.sync.aligned
void wgmma_commit();
// PTX: wgmma.wait_group.sync.aligned
template <int kPending>
inline void wgmma_wait(LINE) {
  wait_for_products(kPending, line);
}
// PTX: +f
template <int kCount>
inline void hold(float (&)[kCount]) {}

}  // namespace emulator
