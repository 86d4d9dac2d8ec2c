// What compiled kernels know of the emulated machine (runtime/): where a thread is, how threads
// meet, what is wrong, and how a launch begins.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <initializer_list>
#include <type_traits>
#include <utility>

#include <vector_types.h>

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

// A default argument is evaluated where the function is called: that is how lines are known.
#define LINE int line = __builtin_LINE()

namespace emulator {

constexpr unsigned kWarp = 32;
constexpr unsigned kWarpgroup = 128;

struct Thread {
  unsigned number, lane, warp;
  unsigned atomics;  // done so far
  void* payload;     // what it brings to a collective
};

extern Thread* current;
extern unsigned char* dynamic_base;  // of the block's dynamic shared memory

// End the run with a message. `line` 0: unknown.
[[noreturn]] __attribute__((format(printf, 2, 3))) void fail(int line, const char* format, ...);

// Go on when every other thread has had a turn.
void let_others_run();

// Wait until `ready(condition)`, which others or an event bring about.
void poll(bool (*ready)(const void*), const void* condition, const char* name, int line);

// The living lanes of `mask` meet; the last one to come completes it for all. lanes[i] is null for
// one that takes no part.
using Complete = void (*)(Thread** lanes, unsigned mask);
void collective(const char* name, unsigned mask, void* payload, Complete complete, int line);
inline void no_exchange(Thread**, unsigned) {}

// An `.aligned` instruction: all threads of the warp or warpgroup (`scope`) meet, none has exited.
void aligned_collective(const char* name, void* payload, Complete complete, int line,
                        unsigned scope = kWarp);

// `expected` threads, 0: all that live. Returns how many of them voted.
unsigned barrier_arrive(const char* name, int id, unsigned expected, bool vote, bool waits,
                        int line);

unsigned living_lanes(unsigned warp);
void note_atomic();
long long tick();

// Shared addresses agree with the host's in the low ten bits: swizzles and alignment hold for both.
unsigned to_shared(const void* pointer, int line);
// So many bytes there, which must be in the block's shared memory and aligned to their number.
unsigned char* from_shared(unsigned address, size_t bytes, const char* name, int line);

// Known to the Python side, field by field.
struct Array {
  void* data;
  size_t bytes;
  int argument;  // the first that is this array
  int writable;
  void* placed;  // where the kernel sees it: filled by the run
};

struct Launch {
  unsigned grid[3];
  unsigned block[3];
  size_t shared_bytes;
  int order;
  unsigned seed;
  double seconds;
  Array* arrays;
  int array_count;
  void** arguments;
  const unsigned* blocks;  // which of the grid's run, x first; null: all
  size_t block_count;
  // Filled by the run:
  int used_atomics;
  size_t fault_offset;  // of the instruction in this library; 0: the message names the line
  char message[8192];
};

// Whether the grid ran to its end.
int run(Launch& launch, void (*body)(void**), std::initializer_list<size_t> shared_alignments);

// ---- The kernel's parameters

constexpr size_t kDescribed = 4096;

template <class T>
void describe(char* text) {
  if constexpr (std::is_pointer_v<T>) {
    using Pointee = std::remove_cv_t<std::remove_pointer_t<T>>;
    strcat(text, "*");
    if constexpr (std::is_arithmetic_v<Pointee>) describe<Pointee>(text);
    return;
  }
  const char* kind = std::is_same_v<T, bool>           ? "b"
                     : std::is_floating_point_v<T>     ? "f"
                     : !std::is_integral_v<T>          ? "V"
                     : std::is_signed_v<T>             ? "i"
                                                       : "u";
  strcat(text, kind);
  char digits[24], *digit = digits + sizeof digits;
  *--digit = 0;
  for (size_t rest = sizeof(T); rest; rest /= 10) *--digit = char('0' + rest % 10);
  strcat(text, digit);
}

// A kind and the bytes of each parameter, as i4; of a pointer's target behind a star.
template <class... Parameters>
const char* signature(void (*)(Parameters...)) {
  static char text[kDescribed];
  text[0] = 0;
  static_assert(sizeof...(Parameters) * 24 < kDescribed);
  ((describe<std::remove_cv_t<Parameters>>(text), strcat(text, " ")), ...);
  return text;
}

template <class... Parameters, size_t... numbers>
void call(void (*kernel)(Parameters...), void** arguments, std::index_sequence<numbers...>) {
  kernel(*static_cast<std::remove_cv_t<Parameters>*>(arguments[numbers])...);
}

template <class... Parameters>
void call(void (*kernel)(Parameters...), void** arguments) {
  call(kernel, arguments, std::index_sequence_for<Parameters...>());
}

}  // namespace emulator
