// Stand-ins for the functions whose body is inline PTX, by the names the kernels give them. The line
// above each holds what the PTX it stands for must contain.
#pragma once

#include <language.h>

namespace emulator {

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

inline void cp_async(unsigned to, const void* from, bool real, int line) {
  if (reinterpret_cast<uintptr_t>(from) % 16) fail(line, "cp.async from %p: not 16-byte aligned", from);
  Copy copy = {from_shared(to, 16, "cp.async", line), {}};
  if (real) memcpy(copy.data, from, sizeof copy.data);
  memset(copy.to, kPoison, sizeof copy.data);
  current->copies.push_back(copy);
}

// PTX: cp.async.cg.shared
inline void cp_async_16(unsigned to, const void* from, LINE) { cp_async(to, from, true, line); }
// PTX: cp.async.cg.shared
inline void cp_async_16_zfill(unsigned to, const void* from, bool real, LINE) {
  cp_async(to, from, real, line);
}
// PTX: cp.async.commit_group
inline void cp_async_commit() {
  current->copy_groups.push_back(std::move(current->copies));
  current->copies.clear();
}
// PTX: cp.async.wait_group
template <int N>
inline void cp_async_wait(LINE) {
  let_others_run();
  while (current->copy_groups.size() > N) {
    for (const Copy& copy : current->copy_groups.front()) {
      if (!is_poison(copy.to, sizeof copy.data)) {
        fail(line, "the target of a cp.async was written before it came");
      }
      memcpy(copy.to, copy.data, sizeof copy.data);
    }
    current->copy_groups.pop_front();
  }
}

// ---- ldmatrix: eight rows of 16 bytes a matrix; lane l gets two elements of row l / 4

struct MatrixLoad {
  const unsigned char* row;
  unsigned* fragments;
};

template <int matrices, bool transposed>
void load_matrices(Thread** lanes, unsigned) {
  const auto load = [&](unsigned lane) -> MatrixLoad& {
    return *static_cast<MatrixLoad*>(lanes[lane]->payload);
  };
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    for (int matrix = 0; matrix < matrices; ++matrix) {
      const auto element = [&](unsigned row, unsigned column) -> unsigned {
        uint16_t value;
        memcpy(&value, load(8 * matrix + row).row + 2 * column, sizeof value);
        return value;
      };
      const unsigned row = lane / 4, column = lane % 4 * 2;
      load(lane).fragments[matrix] =
          transposed ? element(column, row) | element(column + 1, row) << 16
                     : element(row, column) | element(row, column + 1) << 16;
    }
  }
}

template <int matrices, bool transposed>
void ldmatrix(unsigned* fragments, unsigned address, int line) {
  MatrixLoad load = {nullptr, fragments};
  if (current->lane < 8 * matrices) load.row = from_shared(address, 16, "ldmatrix", line);
  aligned_collective("ldmatrix", &load, load_matrices<matrices, transposed>, line);
}

// PTX: ldmatrix.sync.aligned.m8n8.x4.shared.b16
inline void ldmatrix_x4(unsigned (&r)[4], unsigned address, LINE) {
  ldmatrix<4, false>(r, address, line);
}
// PTX: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
inline void ldmatrix_x4_trans(unsigned (&r)[4], unsigned address, LINE) {
  ldmatrix<4, true>(r, address, line);
}
// PTX: ldmatrix.sync.aligned.m8n8.x2.shared.b16
inline void ldmatrix_x2(unsigned (&r)[2], unsigned address, LINE) {
  ldmatrix<2, false>(r, address, line);
}
// PTX: ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16
inline void ldmatrix_x2_trans(unsigned (&r)[2], unsigned address, LINE) {
  ldmatrix<2, true>(r, address, line);
}

// ---- mma.m16n8k16, f16 or bf16 in, f32 out

inline float from_half(uint16_t bits) {
  const unsigned sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3FF;
  if (exponent == 0) return bits_of<float>(sign | bits_of<unsigned>(fraction * 0x1p-24f));
  if (exponent == 31) return bits_of<float>(sign | 0x7F800000u | fraction << 13);
  return bits_of<float>(sign | (exponent + 112) << 23 | fraction << 13);
}
inline float from_bfloat16(uint16_t bits) { return bits_of<float>(unsigned{bits} << 16); }

#ifdef BF16
constexpr auto from_element = from_bfloat16;
#else
constexpr auto from_element = from_half;
#endif

struct Multiplication {
  float* d;
  const unsigned *a, *b;
};

template <float (*convert)(uint16_t)>
void multiply(Thread** lanes, unsigned) {
  float a[16][16], b[8][16];  // b by columns
  const auto put = [](float* to, unsigned pair) {
    to[0] = convert(static_cast<uint16_t>(pair));
    to[1] = convert(static_cast<uint16_t>(pair >> 16));
  };
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    const auto& part = *static_cast<Multiplication*>(lanes[lane]->payload);
    const unsigned group = lane / 4, pair = lane % 4 * 2;
    put(&a[group][pair], part.a[0]);
    put(&a[group + 8][pair], part.a[1]);
    put(&a[group][pair + 8], part.a[2]);
    put(&a[group + 8][pair + 8], part.a[3]);
    put(&b[group][pair], part.b[0]);
    put(&b[group][pair + 8], part.b[1]);
  }
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    float* d = static_cast<Multiplication*>(lanes[lane]->payload)->d;
    for (int i = 0; i < 4; ++i) {
      const float* row = a[lane / 4 + i / 2 * 8];
      const float* column = b[lane % 4 * 2 + i % 2];
      for (int k = 0; k < 16; ++k) d[i] += row[k] * column[k];
    }
  }
}

// PTX: mma.sync.aligned.m16n8k16.row.col.f32 bf16.bf16.f32|f16.f16.f32
inline void mma_16816(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], LINE) {
  Multiplication payload = {d, a, b};
  aligned_collective("mma", &payload, multiply<from_element>, line);
}

}  // namespace emulator
