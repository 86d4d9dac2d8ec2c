// CUDA C++'s keywords and built-in functions, on the emulated machine.
#pragma once

#include <math.h>
#include <stdlib.h>

#include <limits>

#include <machine.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>
#include <vector_functions.h>

#undef __global__
#undef __shared__
#undef __constant__
#undef __device__
#undef __host__
#undef __launch_bounds__
#undef __forceinline__
#undef __grid_constant__
#undef __maxnreg__
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static __attribute__((section("kernel_shared")))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __grid_constant__
#define __builtin_assume(condition) \
  ((condition) ? (void)0 : emulator::fail(__LINE__, "false: %s", #condition))
#define __CUDA_ARCH__ 900

constexpr int warpSize = 32;

// ---- Barriers and fences

inline void __syncthreads(LINE) {
  emulator::barrier_arrive("__syncthreads", 0, 0, false, true, line);
}
inline int __syncthreads_count(int vote, LINE) {
  return emulator::barrier_arrive("__syncthreads_count", 0, 0, vote, true, line);
}
inline int __syncthreads_or(int vote, LINE) {
  return emulator::barrier_arrive("__syncthreads_or", 0, 0, vote, true, line) != 0;
}
inline int __syncthreads_and(int vote, LINE) {
  return emulator::barrier_arrive("__syncthreads_and", 0, 0, !vote, true, line) == 0;
}
inline void __syncwarp(unsigned mask = ~0u, LINE) {
  emulator::collective("__syncwarp", mask, nullptr, emulator::no_exchange, line);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) { emulator::let_others_run(); }
inline long long clock64() { return emulator::tick(); }
[[noreturn]] inline void __trap(LINE) { emulator::fail(line, "__trap()"); }

// ---- Warps

namespace emulator {

struct Exchange {
  unsigned long long value;
  int source;  // a lane; its own where there is none
};

inline Exchange& exchange(Thread* thread) { return *static_cast<Exchange*>(thread->payload); }

inline void shuffle(Thread** lanes, unsigned) {
  unsigned long long values[kWarp];
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    values[lane] = lanes[lane] ? exchange(lanes[lane]).value : ~0ull;  // poison: it takes no part
  }
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (lanes[lane]) exchange(lanes[lane]).value = values[exchange(lanes[lane]).source];
  }
}

template <class T>
T shuffled(const char* name, unsigned mask, T value, int source, int line) {
  static_assert(sizeof(T) <= sizeof(unsigned long long), "a shuffle moves up to 64 bits");
  Exchange exchange = {0, source};
  memcpy(&exchange.value, &value, sizeof value);
  collective(name, mask, &exchange, shuffle, line);
  memcpy(&value, &exchange.value, sizeof value);
  return value;
}

inline void check_width(int width, int line) {
  const bool right = 1 <= width && width <= 32 && !(width & (width - 1));
  if (!right) fail(line, "a shuffle's width of %d", width);
}

inline void gather(Thread** lanes, unsigned) {  // who votes, as a mask
  unsigned votes = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (lanes[lane] && exchange(lanes[lane]).value) votes |= 1u << lane;
  }
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (lanes[lane]) exchange(lanes[lane]).value = votes;
  }
}

inline unsigned voted(const char* name, unsigned mask, bool vote, int line) {
  Exchange exchange = {vote, 0};
  collective(name, mask, &exchange, gather, line);
  return static_cast<unsigned>(exchange.value);
}

template <class Operation>
void reduce(Thread** lanes, unsigned mask) {
  auto result = static_cast<typename Operation::Value>(exchange(lanes[__builtin_ctz(mask)]).value);
  for (unsigned lane = __builtin_ctz(mask) + 1; lane < kWarp; ++lane) {
    if (!lanes[lane]) continue;
    const auto value = static_cast<typename Operation::Value>(exchange(lanes[lane]).value);
    result = Operation::of(result, value);
  }
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (lanes[lane]) exchange(lanes[lane]).value = static_cast<unsigned>(result);
  }
}

template <class Operation>
typename Operation::Value reduced(const char* name, unsigned mask, unsigned value, int line) {
  Exchange exchange = {value, 0};
  collective(name, mask, &exchange, reduce<Operation>, line);
  return static_cast<typename Operation::Value>(exchange.value);
}

template <bool all>
void match(Thread** lanes, unsigned mask) {
  unsigned equal[kWarp] = {};
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    for (unsigned other = 0; other < kWarp; ++other) {
      if (lanes[lane] && lanes[other] &&
          exchange(lanes[lane]).value == exchange(lanes[other]).value) {
        equal[lane] |= 1u << other;
      }
    }
  }
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (lanes[lane]) exchange(lanes[lane]).value = all && equal[lane] != mask ? 0 : equal[lane];
  }
}

}  // namespace emulator

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, LINE) {
  emulator::check_width(width, line);
  const int lane = emulator::current->lane, first = lane & ~(width - 1);
  return emulator::shuffled("__shfl_sync", mask, value, first | (source & (width - 1)), line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, LINE) {
  emulator::check_width(width, line);
  const int lane = emulator::current->lane, first = lane & ~(width - 1);
  const int source = lane - static_cast<int>(delta);
  return emulator::shuffled("__shfl_up_sync", mask, value, source < first ? lane : source, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, LINE) {
  emulator::check_width(width, line);
  const int lane = emulator::current->lane, last = lane | (width - 1);
  const int source = lane + static_cast<int>(delta);
  return emulator::shuffled("__shfl_down_sync", mask, value, source > last ? lane : source, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, LINE) {
  emulator::check_width(width, line);
  const int lane = emulator::current->lane, last = lane | (width - 1);
  const int source = lane ^ bits;
  return emulator::shuffled("__shfl_xor_sync", mask, value,
                            source < 0 || source > last ? lane : source, line);
}
inline unsigned __ballot_sync(unsigned mask, int vote, LINE) {
  return emulator::voted("__ballot_sync", mask, vote, line);
}
inline int __any_sync(unsigned mask, int vote, LINE) {
  return emulator::voted("__any_sync", mask, vote, line) != 0;
}
inline int __all_sync(unsigned mask, int vote, LINE) {
  return emulator::voted("__all_sync", mask, !vote, line) == 0;
}
// Of the lanes that live: which of them are in this branch is not known.
inline unsigned __activemask() { return emulator::living_lanes(emulator::current->warp); }

#define REDUCTION(name, type, expression)                                 \
  namespace emulator {                                                    \
  struct name##_of_##type {                                               \
    using Value = type;                                                   \
    static Value of(Value a, Value b) { return expression; }              \
  };                                                                      \
  }                                                                       \
  inline type __reduce_##name##_sync(unsigned mask, type value, LINE) {   \
    return emulator::reduced<emulator::name##_of_##type>(                 \
        "__reduce_" #name "_sync", mask, static_cast<unsigned>(value), line); \
  }
REDUCTION(add, unsigned, a + b)
REDUCTION(add, int, a + b)
REDUCTION(min, unsigned, a < b ? a : b)
REDUCTION(min, int, a < b ? a : b)
REDUCTION(max, unsigned, a > b ? a : b)
REDUCTION(max, int, a > b ? a : b)
REDUCTION(and, unsigned, a & b)
REDUCTION(or, unsigned, a | b)
REDUCTION(xor, unsigned, a ^ b)
#undef REDUCTION

template <class T>
unsigned __match_any_sync(unsigned mask, T value, LINE) {
  emulator::Exchange exchange = {};
  memcpy(&exchange.value, &value, sizeof value);
  emulator::collective("__match_any_sync", mask, &exchange, emulator::match<false>, line);
  return static_cast<unsigned>(exchange.value);
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all, LINE) {
  emulator::Exchange exchange = {};
  memcpy(&exchange.value, &value, sizeof value);
  emulator::collective("__match_all_sync", mask, &exchange, emulator::match<true>, line);
  *all = exchange.value != 0;
  return static_cast<unsigned>(exchange.value);
}

// ---- Atomics

namespace emulator {

template <class T, class... Types>
constexpr bool one_of = (std::is_same_v<T, Types> || ...);

// Threads switch at nothing but calls of the machine, so an update is atomic anyway.
template <class T, class Update>
T atomically(T* address, Update update) {
  note_atomic();
  const T old = *address;
  *address = update(old);
  return old;
}

}  // namespace emulator

#define ATOMIC(name, expression, ...)                                                       \
  template <class T>                                                                        \
  T name(T* address, std::common_type_t<T> value) {                                         \
    static_assert(emulator::one_of<T, __VA_ARGS__>, #name " knows no such type");           \
    return emulator::atomically(address, [&](T old) -> T { return expression; });           \
  }                                                                                         \
  template <class T>                                                                        \
  T name##_block(T* address, std::common_type_t<T> value) {                                 \
    return name(address, value);                                                            \
  }
#define INTEGERS int, unsigned, unsigned long long
ATOMIC(atomicAdd, old + value, INTEGERS, float, double, __half, __half2, __nv_bfloat16,
       __nv_bfloat162)
ATOMIC(atomicSub, old - value, int, unsigned)
ATOMIC(atomicExch, value, INTEGERS, float)
ATOMIC(atomicMin, old < value ? old : value, INTEGERS, long long)
ATOMIC(atomicMax, old > value ? old : value, INTEGERS, long long)
ATOMIC(atomicInc, old >= value ? 0 : old + 1, unsigned)
ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1, unsigned)
ATOMIC(atomicAnd, old & value, INTEGERS)
ATOMIC(atomicOr, old | value, INTEGERS)
ATOMIC(atomicXor, old ^ value, INTEGERS)
#undef ATOMIC
template <class T>
T atomicCAS(T* address, std::common_type_t<T> compare, std::common_type_t<T> value) {
  static_assert(emulator::one_of<T, INTEGERS, unsigned short>, "atomicCAS knows no such type");
  return emulator::atomically(address, [&](T old) { return old == compare ? value : old; });
}
#undef INTEGERS

// ---- Loads and stores with cache hints

#define LOAD(name) \
  template <class T> T name(const T* address) { return *address; }
LOAD(__ldg) LOAD(__ldca) LOAD(__ldcg) LOAD(__ldcs) LOAD(__ldcv) LOAD(__ldlu)
#undef LOAD
#define STORE(name) \
  template <class T> void name(T* address, std::common_type_t<T> value) { *address = value; }
STORE(__stcg) STORE(__stcs) STORE(__stwb) STORE(__stwt)
#undef STORE
inline size_t __cvta_generic_to_shared(const void* pointer, LINE) {
  return emulator::to_shared(pointer, line);
}

// ---- Arithmetic

#define MINMAX(type)                                            \
  inline type min(type a, type b) { return b < a ? b : a; }     \
  inline type max(type a, type b) { return a < b ? b : a; }
MINMAX(int) MINMAX(unsigned) MINMAX(long) MINMAX(unsigned long) MINMAX(long long)
MINMAX(unsigned long long)
#undef MINMAX
#define MIXED(other, type)                                                                \
  inline type min(other a, type b) { return min(static_cast<type>(a), b); }               \
  inline type min(type a, other b) { return min(a, static_cast<type>(b)); }               \
  inline type max(other a, type b) { return max(static_cast<type>(a), b); }               \
  inline type max(type a, other b) { return max(a, static_cast<type>(b)); }
MIXED(int, unsigned) MIXED(long, unsigned long) MIXED(long long, unsigned long long)
#undef MIXED
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double max(double a, float b) { return fmax(a, b); }

#define LIKE(name, parameters, expression) \
  inline auto name parameters { return expression; }
namespace emulator {  // the C library declares functions of these names
LIKE(fast_exp, (float x), expf(x))
LIKE(fast_exp10, (float x), exp10f(x))
LIKE(fast_log, (float x), logf(x))
LIKE(fast_log2, (float x), log2f(x))
LIKE(fast_log10, (float x), log10f(x))
LIKE(fast_sin, (float x), sinf(x))
LIKE(fast_cos, (float x), cosf(x))
LIKE(fast_tan, (float x), tanf(x))
LIKE(fast_tanh, (float x), tanhf(x))
LIKE(fast_pow, (float x, float y), powf(x, y))
LIKE(fast_sincos, (float x, float* s, float* c), sincosf(x, s, c))
}  // namespace emulator
#define __expf emulator::fast_exp
#define __exp10f emulator::fast_exp10
#define __logf emulator::fast_log
#define __log2f emulator::fast_log2
#define __log10f emulator::fast_log10
#define __sinf emulator::fast_sin
#define __cosf emulator::fast_cos
#define __tanf emulator::fast_tan
#define __tanhf emulator::fast_tanh
#define __powf emulator::fast_pow
#define __sincosf emulator::fast_sincos
LIKE(rsqrtf, (float x), static_cast<float>(1.0 / sqrt(static_cast<double>(x))))
LIKE(rsqrt, (double x), 1.0 / sqrt(x))
LIKE(rsqrt, (float x), rsqrtf(x))
LIKE(rcbrtf, (float x), static_cast<float>(1.0 / cbrt(static_cast<double>(x))))
LIKE(sinpif, (float x), static_cast<float>(sin(M_PI * x)))
LIKE(cospif, (float x), static_cast<float>(cos(M_PI * x)))
LIKE(normcdff, (float x), 0.5f * erfcf(-x * 0.70710678f))
LIKE(fdividef, (float x, float y), x / y)
LIKE(__fdividef, (float x, float y), x / y)
LIKE(__saturatef, (float x), x >= 0 ? fminf(x, 1.0f) : 0.0f)
LIKE(__fadd_rn, (float x, float y), x + y)
LIKE(__fsub_rn, (float x, float y), x - y)
LIKE(__fmul_rn, (float x, float y), x * y)
LIKE(__fmaf_rn, (float x, float y, float z), fmaf(x, y, z))
LIKE(__fdiv_rn, (float x, float y), x / y)
LIKE(__frcp_rn, (float x), 1.0f / x)
LIKE(__fsqrt_rn, (float x), sqrtf(x))
LIKE(__frsqrt_rn, (float x), rsqrtf(x))
LIKE(__dadd_rn, (double x, double y), x + y)
LIKE(__dsub_rn, (double x, double y), x - y)
LIKE(__dmul_rn, (double x, double y), x * y)
LIKE(__ddiv_rn, (double x, double y), x / y)
LIKE(__fma_rn, (double x, double y, double z), fma(x, y, z))
LIKE(__drcp_rn, (double x), 1.0 / x)
LIKE(__dsqrt_rn, (double x), sqrt(x))

namespace emulator {

template <class To, class From>
To bits_of(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

template <class To, class From>
To converted(From value) {  // a NaN becomes 0, what is too large the nearest
  if (value != value) return 0;
  if (value <= static_cast<From>(std::numeric_limits<To>::min())) {
    return std::numeric_limits<To>::min();
  }
  if (value >= static_cast<From>(std::numeric_limits<To>::max())) {
    return std::numeric_limits<To>::max();
  }
  return static_cast<To>(value);
}

}  // namespace emulator

LIKE(__int_as_float, (int x), emulator::bits_of<float>(x))
LIKE(__uint_as_float, (unsigned x), emulator::bits_of<float>(x))
LIKE(__float_as_int, (float x), emulator::bits_of<int>(x))
LIKE(__float_as_uint, (float x), emulator::bits_of<unsigned>(x))
LIKE(__longlong_as_double, (long long x), emulator::bits_of<double>(x))
LIKE(__double_as_longlong, (double x), emulator::bits_of<long long>(x))
LIKE(__hiloint2double, (int high, int low),
     emulator::bits_of<double>(static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 |
                               static_cast<unsigned>(low)))
LIKE(__double2hiint, (double x), static_cast<int>(emulator::bits_of<unsigned long long>(x) >> 32))
LIKE(__double2loint, (double x), static_cast<int>(emulator::bits_of<unsigned long long>(x)))
#define ROUNDED(from, to, type, source)                                                   \
  LIKE(__##from##2##to##_rn, (source x), emulator::converted<type>(nearbyint(x)))         \
  LIKE(__##from##2##to##_rz, (source x), emulator::converted<type>(trunc(x)))             \
  LIKE(__##from##2##to##_rd, (source x), emulator::converted<type>(floor(x)))             \
  LIKE(__##from##2##to##_ru, (source x), emulator::converted<type>(ceil(x)))
ROUNDED(float, int, int, float)
ROUNDED(float, uint, unsigned, float)
ROUNDED(float, ll, long long, float)
ROUNDED(float, ull, unsigned long long, float)
ROUNDED(double, int, int, double)
ROUNDED(double, uint, unsigned, double)
ROUNDED(double, ll, long long, double)
ROUNDED(double, ull, unsigned long long, double)
#undef ROUNDED
LIKE(__double2float_rn, (double x), static_cast<float>(x))
LIKE(__int2float_rn, (int x), static_cast<float>(x))
LIKE(__uint2float_rn, (unsigned x), static_cast<float>(x))
LIKE(__ll2float_rn, (long long x), static_cast<float>(x))
LIKE(__ull2float_rn, (unsigned long long x), static_cast<float>(x))
LIKE(__int2double_rn, (int x), static_cast<double>(x))
LIKE(__uint2double_rn, (unsigned x), static_cast<double>(x))
LIKE(__ll2double_rn, (long long x), static_cast<double>(x))
LIKE(__ull2double_rn, (unsigned long long x), static_cast<double>(x))

LIKE(__popc, (unsigned x), __builtin_popcount(x))
LIKE(__popcll, (unsigned long long x), __builtin_popcountll(x))
LIKE(__clz, (int x), x ? __builtin_clz(x) : 32)
LIKE(__clzll, (long long x), x ? __builtin_clzll(x) : 64)
LIKE(__ffs, (int x), __builtin_ffs(x))
LIKE(__ffsll, (long long x), __builtin_ffsll(x))
LIKE(__umulhi, (unsigned x, unsigned y),
     static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32))
LIKE(__mulhi, (int x, int y), static_cast<int>(static_cast<long long>(x) * y >> 32))
LIKE(__umul64hi, (unsigned long long x, unsigned long long y),
     static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64))
LIKE(__mul24, (int x, int y), (x << 8 >> 8) * (y << 8 >> 8))
LIKE(__umul24, (unsigned x, unsigned y), (x & 0xFFFFFF) * (y & 0xFFFFFF))
LIKE(__sad, (int x, int y, unsigned z), z + static_cast<unsigned>(abs(x - y)))
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1) << (31 - bit);
  return reversed;
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (int byte = 0; byte < 4; ++byte) {
    const unsigned choice = selector >> 4 * byte;
    unsigned value = bytes >> 8 * (choice & 7) & 0xFF;
    if (choice & 8) value = value & 0x80 ? 0xFF : 0;
    result |= value << 8 * byte;
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32 | low)
                                << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
inline int __dp4a(int x, int y, int sum) {
  for (int byte = 0; byte < 4; ++byte) {
    sum += static_cast<signed char>(x >> 8 * byte) * static_cast<signed char>(y >> 8 * byte);
  }
  return sum;
}

// ---- What the half headers give device code only

#define HALVES(type, pair, to_float, from_float, from_double, join, low, high)                     \
  LIKE(__hfma, (type a, type b, type c),                                                           \
       from_double(fma(double{to_float(a)}, double{to_float(b)}, double{to_float(c)})))            \
  LIKE(__hfma2, (pair a, pair b, pair c),                                                          \
       join(__hfma(low(a), low(b), low(c)), __hfma(high(a), high(b), high(c))))                    \
  HALF_FUNCTION(exp, expf(x), type, pair, to_float, from_float, join, low, high)                   \
  HALF_FUNCTION(exp2, exp2f(x), type, pair, to_float, from_float, join, low, high)                 \
  HALF_FUNCTION(exp10, exp10f(x), type, pair, to_float, from_float, join, low, high)               \
  HALF_FUNCTION(log, logf(x), type, pair, to_float, from_float, join, low, high)                   \
  HALF_FUNCTION(log2, log2f(x), type, pair, to_float, from_float, join, low, high)                 \
  HALF_FUNCTION(log10, log10f(x), type, pair, to_float, from_float, join, low, high)               \
  HALF_FUNCTION(sqrt, sqrtf(x), type, pair, to_float, from_float, join, low, high)                 \
  HALF_FUNCTION(rsqrt, rsqrtf(x), type, pair, to_float, from_float, join, low, high)               \
  HALF_FUNCTION(rcp, 1.0f / x, type, pair, to_float, from_float, join, low, high)                  \
  HALF_FUNCTION(sin, sinf(x), type, pair, to_float, from_float, join, low, high)                   \
  HALF_FUNCTION(cos, cosf(x), type, pair, to_float, from_float, join, low, high)                   \
  HALF_FUNCTION(tanh, tanhf(x), type, pair, to_float, from_float, join, low, high)                 \
  HALF_FUNCTION(floor, floorf(x), type, pair, to_float, from_float, join, low, high)               \
  HALF_FUNCTION(ceil, ceilf(x), type, pair, to_float, from_float, join, low, high)                 \
  HALF_FUNCTION(trunc, truncf(x), type, pair, to_float, from_float, join, low, high)               \
  HALF_FUNCTION(rint, nearbyintf(x), type, pair, to_float, from_float, join, low, high)
#define HALF_FUNCTION(name, expression, type, pair, to_float, from_float, join, low, high) \
  inline type h##name(type half) {                                                         \
    const float x = to_float(half);                                                        \
    return from_float(expression);                                                         \
  }                                                                                        \
  inline pair h2##name(pair x) { return join(h##name(low(x)), h##name(high(x))); }
HALVES(__half, __half2, __half2float, __float2half_rn, __double2half, __halves2half2, __low2half,
       __high2half)
HALVES(__nv_bfloat16, __nv_bfloat162, __bfloat162float, __float2bfloat16_rn, __double2bfloat16,
       __halves2bfloat162, __low2bfloat16, __high2bfloat16)
#undef HALF_FUNCTION
#undef HALVES
#undef LIKE
