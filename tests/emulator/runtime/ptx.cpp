// cp.async, ldmatrix and mma, as the PTX ISA defines them.

#include <ptx.h>

#include "runtime.h"

namespace emulator {

// ---- cp.async

struct Copy {
  unsigned char* to;
  unsigned char data[16];
};

struct Copies {  // of a thread
  std::vector<Copy> open;
  std::deque<std::vector<Copy>> groups;
};

static std::vector<Copies> copies;  // by thread

void start_copies() { copies.assign(machine.threads.size(), {}); }

void cp_async(unsigned to, const void* from, bool real, int line) {
  if (reinterpret_cast<uintptr_t>(from) % 16) {
    fail(line, "cp.async from %p, which is not 16-byte aligned", from);
  }
  Copy copy = {from_shared(to, 16, "cp.async", line), {}};
  if (real) memcpy(copy.data, from, sizeof copy.data);
  memset(copy.to, kPoison, sizeof copy.data);
  copies[current->number].open.push_back(copy);
}

void cp_async_commit() {
  Copies& own = copies[current->number];
  own.groups.push_back(std::move(own.open));
  own.open.clear();
}

void wait_for_copies(unsigned pending, int line) {
  let_others_run();
  auto& groups = copies[current->number].groups;
  while (groups.size() > pending) {
    for (const Copy& copy : groups.front()) {
      if (!is_poison(copy.to, sizeof copy.data)) {
        fail(line, "the target of a cp.async was written before it came");
      }
      memcpy(copy.to, copy.data, sizeof copy.data);
    }
    groups.pop_front();
  }
}

// ---- ldmatrix: eight rows of 16 bytes a matrix; lane l gets two elements of row l / 4

struct MatrixLoad {
  const unsigned char* row;
  unsigned* fragments;
};

template <unsigned matrices, bool transposed>
static void load_matrices(Thread** lanes, unsigned) {
  const auto load = [&](unsigned lane) -> MatrixLoad& {
    return *static_cast<MatrixLoad*>(lanes[lane]->payload);
  };
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    for (unsigned matrix = 0; matrix < matrices; ++matrix) {
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

void ldmatrix(int matrices, bool transposed, unsigned* fragments, unsigned address, int line) {
  MatrixLoad load = {nullptr, fragments};
  if (current->lane < 8u * matrices) load.row = from_shared(address, 16, "ldmatrix", line);
  const Complete complete = matrices == 4
                                ? transposed ? load_matrices<4, true> : load_matrices<4, false>
                            : transposed ? load_matrices<2, true>
                                         : load_matrices<2, false>;
  aligned_collective("ldmatrix", &load, complete, line);
}

// ---- mma

float from_half(uint16_t bits) {
  const unsigned sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3FF;
  unsigned wide = sign | (exponent + 112) << 23 | fraction << 13;
  if (exponent == 31) wide = sign | 0x7F800000u | fraction << 13;
  float value;
  memcpy(&value, &wide, sizeof value);
  if (exponent) return value;
  return static_cast<float>(fraction) * (sign ? -0x1p-24f : 0x1p-24f);
}

float from_bfloat16(uint16_t bits) {
  const unsigned wide = unsigned{bits} << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

struct Multiplication {
  float* d;
  const unsigned *a, *b;
};

template <float (*convert)(uint16_t)>
static void multiply(Thread** lanes, unsigned) {
  float a[16][16], b[16][8], d[16][8];
  const auto each_lane = [&](auto visit) {
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      visit(*static_cast<Multiplication*>(lanes[lane]->payload), lane / 4, lane % 4 * 2);
    }
  };
  const auto low = [](unsigned pair) { return convert(static_cast<uint16_t>(pair)); };
  const auto high = [](unsigned pair) { return convert(static_cast<uint16_t>(pair >> 16)); };
  each_lane([&](const Multiplication& part, unsigned group, unsigned pair) {
    for (unsigned i = 0; i < 4; ++i) {
      a[group + i % 2 * 8][pair + i / 2 * 8] = low(part.a[i]);
      a[group + i % 2 * 8][pair + i / 2 * 8 + 1] = high(part.a[i]);
      d[group + i / 2 * 8][pair + i % 2] = part.d[i];
    }
    for (unsigned i = 0; i < 2; ++i) {
      b[pair + i * 8][group] = low(part.b[i]);
      b[pair + i * 8 + 1][group] = high(part.b[i]);
    }
  });
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < 16; ++k) {
      for (int column = 0; column < 8; ++column) d[row][column] += a[row][k] * b[k][column];
    }
  }
  each_lane([&](const Multiplication& part, unsigned group, unsigned pair) {
    for (unsigned i = 0; i < 4; ++i) part.d[i] = d[group + i / 2 * 8][pair + i % 2];
  });
}

void multiply_16816(float* d, const unsigned* a, const unsigned* b, bool bf16, int line) {
  Multiplication payload = {d, a, b};
  aligned_collective("mma", &payload, bf16 ? multiply<from_bfloat16> : multiply<from_half>, line);
}

}  // namespace emulator
