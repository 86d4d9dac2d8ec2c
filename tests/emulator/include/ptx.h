// Stand-ins for the functions whose body is inline PTX, by the names the kernels give them. The
// line above each holds what the PTX it stands for must contain.
#pragma once

#include <math.h>

#include <machine.h>

namespace emulator {

extern const bool kBf16;  // element.h

// PTX: cvta.to.shared
inline unsigned shared_address(const void* pointer, LINE) { return to_shared(pointer, line); }

// PTX: ex2.approx.ftz.f32
inline float exp2_approx(float x) {
  const float y = exp2f(x);
  return y < 0x1p-126f ? 0.0f : y;
}
// PTX: ex2.approx.ftz.f32
inline float exp2_approximate(float x) { return exp2_approx(x); }

// ---- cp.async: the bytes arrive at the wait; until then the target is poisoned

void cp_async(unsigned to, const void* from, bool real, int line);
void wait_for_copies(unsigned pending, int line);

// PTX: cp.async.cg.shared
inline void cp_async_16(unsigned to, const void* from, LINE) { cp_async(to, from, true, line); }
// PTX: cp.async.cg.shared
inline void cp_async_16_zfill(unsigned to, const void* from, bool real, LINE) {
  cp_async(to, from, real, line);
}
// PTX: cp.async.commit_group
void cp_async_commit();
// PTX: cp.async.wait_group
template <int N>
inline void cp_async_wait(LINE) {
  wait_for_copies(N, line);
}

// ---- Warp-level matrices

void ldmatrix(int matrices, bool transposed, unsigned* fragments, unsigned address, int line);

// PTX: ldmatrix.sync.aligned.m8n8.x4.shared.b16
inline void ldmatrix_x4(unsigned (&r)[4], unsigned address, LINE) {
  ldmatrix(4, false, r, address, line);
}
// PTX: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
inline void ldmatrix_x4_trans(unsigned (&r)[4], unsigned address, LINE) {
  ldmatrix(4, true, r, address, line);
}
// PTX: ldmatrix.sync.aligned.m8n8.x2.shared.b16
inline void ldmatrix_x2(unsigned (&r)[2], unsigned address, LINE) {
  ldmatrix(2, false, r, address, line);
}
// PTX: ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16
inline void ldmatrix_x2_trans(unsigned (&r)[2], unsigned address, LINE) {
  ldmatrix(2, true, r, address, line);
}

void multiply_16816(float* d, const unsigned* a, const unsigned* b, bool bf16, int line);

// PTX: mma.sync.aligned.m16n8k16.row.col.f32 bf16.bf16.f32|f16.f16.f32
inline void mma_16816(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], LINE) {
  multiply_16816(d, a, b, kBf16, line);
}

}  // namespace emulator
