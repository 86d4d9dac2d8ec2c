// A streaming multiprocessor as seen by one block at a time: threads are fibers that run until they
// wait for each other, shared memory is poisoned at a block's start, global arrays lie between
// guard zones, and whatever is wrong ends the run with a message.
#pragma once

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <vector_types.h>

extern unsigned char __start_kernel_shared[] __attribute__((weak, visibility("hidden")));
extern unsigned char __stop_kernel_shared[] __attribute__((weak, visibility("hidden")));

// Not static: the compiler must expect that they change at every call.
uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulator {

constexpr unsigned char kPoison = 0xFF;  // NaN in every floating type
constexpr size_t kPage = 4096;
constexpr size_t kStack = 256 << 10;
constexpr size_t kGuard = size_t{1} << 30;  // around a global array
constexpr size_t kMaxShared = 227 << 10;
constexpr size_t kMaxStaticShared = 48 << 10;
constexpr unsigned kWarp = 32;
constexpr unsigned kWarpgroup = 128;
constexpr int kBarriers = 16;

enum class Order : int { kForward, kReverse, kShuffled };

// These two are known to the Python side, field by field.
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
  // Filled by the run:
  int used_atomics;
  size_t fault_offset;  // of the instruction in this library; 0: the message names the line
  char message[8192];
};

struct Thread;
using Complete = void (*)(Thread** lanes, unsigned mask);  // lanes[i]: null if not in the mask

struct Copy {  // of cp.async, not yet done
  unsigned char* to;
  unsigned char data[16];
};

enum class State { kReady, kGivesWay, kCollective, kBarrier, kPolling, kExited };

struct Thread {
  jmp_buf context;
  bool started;
  State state;
  uint3 index;
  unsigned number, lane, warp;
  const char* waits_for;
  int line;
  unsigned mask;      // of the collective it waits in: lanes, of each of its warps
  unsigned scope;     // of the collective: 32 threads or 128
  Complete complete;  // which collective
  void* payload;
  int barrier;
  unsigned votes;  // what a barrier with a predicate found
  bool (*ready)(const void*);
  const void* condition;
  unsigned atomics;
  std::vector<Copy> copies;  // since the last commit
  std::deque<std::vector<Copy>> copy_groups;
};

struct Barrier {
  unsigned arrived, expected, votes;
  int line;
};

struct Region {
  unsigned char *map, *first, *data, *end, *last;  // map: with guards; first…last: accessible
  Array array;
};

struct Machine {
  Launch* launch;
  void (*body)(void**);
  std::vector<Thread> threads;
  std::vector<unsigned> order;
  unsigned living, warps;
  Barrier barriers[kBarriers];
  std::vector<Region> regions;
  std::deque<std::function<void()>> events;  // asynchronous: what is due
  std::vector<void (*)()> block_starts, block_ends;
  std::mt19937 random;
  unsigned char* stacks;
  unsigned char* dynamic_map;
  size_t dynamic_room;
  jmp_buf scheduler;
  sigjmp_buf abandoned;
  ucontext_t start;
  long long clock;
  bool inside;
};

Machine machine;
Thread* current;
unsigned char* dynamic_base;

[[noreturn]] inline void abandon() { siglongjmp(machine.abandoned, 1); }

inline std::string position() {
  if (!current) return "";
  char text[160];
  snprintf(text, sizeof text, "block (%u, %u, %u), thread (%u, %u, %u)", blockIdx.x, blockIdx.y,
           blockIdx.z, current->index.x, current->index.y, current->index.z);
  return text;
}

// End the run. `line` 0: unknown.
[[noreturn]] __attribute__((format(printf, 2, 3), noinline)) inline void fail(int line,
                                                                              const char* format,
                                                                              ...) {
  char what[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  std::string where = position();
  if (line) where += (where.empty() ? "line " : ", line ") + std::to_string(line);
  snprintf(machine.launch->message, sizeof machine.launch->message, "%s%s%s", where.c_str(),
           where.empty() ? "" : ": ", what);
  abandon();
}

// ---- Fibers

__attribute__((noinline)) inline void suspend() {
  if (!_setjmp(current->context)) _longjmp(machine.scheduler, 1);
}

// Go on when every other thread has had a turn.
inline void let_others_run() {
  current->state = State::kGivesWay;
  suspend();
}

inline bool lane_exists(unsigned warp, unsigned lane) {
  return warp * kWarp + lane < machine.threads.size();
}

inline Thread& lane_of(unsigned warp, unsigned lane) { return machine.threads[warp * kWarp + lane]; }

inline unsigned living_lanes(unsigned warp) {
  unsigned mask = 0;
  for (unsigned lane = 0; lane < kWarp && lane_exists(warp, lane); ++lane) {
    if (lane_of(warp, lane).state != State::kExited) mask |= 1u << lane;
  }
  return mask;
}

// Complete the collective that `first` waits in if every living lane of its mask is there.
inline bool try_complete(Thread& first) {
  const unsigned scope = first.scope, start = first.number / scope * scope;
  unsigned mask = 0;
  Thread* lanes[kWarpgroup] = {};
  for (unsigned lane = 0; lane < scope && start + lane < machine.threads.size(); ++lane) {
    Thread& other = machine.threads[start + lane];
    if (other.state == State::kExited || !(first.mask >> other.lane & 1)) continue;
    if (other.state != State::kCollective || other.complete != first.complete ||
        other.mask != first.mask) {
      return false;
    }
    lanes[lane] = &other;
    mask |= 1u << other.lane;
  }
  first.complete(lanes, mask);
  for (Thread* other : lanes) {
    if (other) other->state = State::kReady;
  }
  return true;
}

// The living lanes of `mask` meet; the last one to come completes it for all.
__attribute__((noinline)) inline void collective(const char* name, unsigned mask, void* payload,
                                                 Complete complete, int line,
                                                 unsigned scope = kWarp) {
  Thread& self = *current;
  if (!(mask >> self.lane & 1)) fail(line, "%s by a lane that is not in its mask %#x", name, mask);
  self.mask = mask;
  self.scope = scope;
  self.payload = payload;
  self.complete = complete;
  self.state = State::kCollective;
  self.waits_for = name;
  self.line = line;
  if (!try_complete(self)) suspend();
}

inline void no_exchange(Thread**, unsigned) {}

// An `.aligned` instruction: all threads of the warp or warpgroup execute it, none has exited.
inline void aligned_collective(const char* name, void* payload, Complete complete, int line,
                               unsigned scope = kWarp) {
  const unsigned start = current->number / scope * scope;
  for (unsigned number = start; number < start + scope; ++number) {
    if (number >= machine.threads.size() || machine.threads[number].state == State::kExited) {
      fail(line, "%s needs threads %u to %u, and %u has ended", name, start, start + scope - 1,
           number);
    }
  }
  collective(name, ~0u, payload, complete, line, scope);
}

inline void release_if_full(int id) {
  Barrier& barrier = machine.barriers[id];
  const unsigned expected = barrier.expected ? barrier.expected : machine.living;
  if (!barrier.arrived || barrier.arrived < expected) return;
  if (barrier.arrived > expected) {
    fail(barrier.line, "%u threads came to barrier %d of %u", barrier.arrived, id, expected);
  }
  for (Thread& thread : machine.threads) {
    if (thread.state != State::kBarrier || thread.barrier != id) continue;
    thread.votes = barrier.votes;
    thread.state = State::kReady;
  }
  barrier = {};
}

// `expected` threads, 0: all that live. Returns how many of them voted.
__attribute__((noinline)) inline unsigned barrier_arrive(const char* name, int id,
                                                         unsigned expected, bool vote, bool waits,
                                                         int line) {
  if (id < 0 || id >= kBarriers) fail(line, "%s: there is no barrier %d", name, id);
  if (expected % kWarp) fail(line, "%s: %u threads are not whole warps", name, expected);
  Barrier& barrier = machine.barriers[id];
  if (barrier.arrived && barrier.expected != expected) {
    fail(line, "%s: barrier %d expects %u threads here and %u at line %d", name, id, expected,
         barrier.expected, barrier.line);
  }
  if (barrier.arrived && !expected && barrier.line != line) {
    fail(line, "%s here, while other threads of the block wait at the one of line %d", name,
         barrier.line);
  }
  barrier.expected = expected;
  barrier.line = line;
  barrier.votes += vote;
  ++barrier.arrived;
  current->barrier = id;
  if (waits) {
    current->state = State::kBarrier;
    current->waits_for = name;
    current->line = line;
  }
  release_if_full(id);
  if (waits && current->state == State::kBarrier) suspend();
  return current->votes;
}

// Wait until `ready(condition)`, which others or an event bring about.
inline void poll(bool (*ready)(const void*), const void* condition, const char* name, int line) {
  if (ready(condition)) return;
  current->ready = ready;
  current->condition = condition;
  current->state = State::kPolling;
  current->waits_for = name;
  current->line = line;
  suspend();
}

inline void leave() {
  Thread& self = *current;
  self.state = State::kExited;
  --machine.living;
  for (unsigned lane = 0; lane < kWarp && lane_exists(self.warp, lane); ++lane) {
    Thread& other = lane_of(self.warp, lane);
    if (other.state == State::kCollective && other.mask >> self.lane & 1) try_complete(other);
  }
  for (int id = 0; id < kBarriers; ++id) {
    if (!machine.barriers[id].expected) release_if_full(id);
  }
}

inline void fiber() {
  for (;;) {
    machine.body(machine.launch->arguments);
    leave();
    suspend();
  }
}

__attribute__((noinline)) inline void resume(Thread& thread) {
  current = &thread;
  threadIdx = thread.index;
  if (!_setjmp(machine.scheduler)) {
    if (thread.started) _longjmp(thread.context, 1);
    thread.started = true;
    getcontext(&machine.start);
    const size_t number = &thread - machine.threads.data();
    machine.start.uc_stack.ss_sp = machine.stacks + number * kStack + kPage;
    machine.start.uc_stack.ss_size = kStack - kPage;
    machine.start.uc_link = nullptr;
    makecontext(&machine.start, fiber, 0);
    setcontext(&machine.start);
  }
  current = nullptr;
}

[[noreturn]] inline void fail_of_deadlock() {
  std::string text = "deadlock, no thread can go on:";
  const auto alike = [](const Thread& a, const Thread& b) {
    return a.state == b.state && (a.state == State::kExited ||
                                  (a.line == b.line && !strcmp(a.waits_for, b.waits_for)));
  };
  const std::vector<Thread>& threads = machine.threads;
  for (size_t first = 0, end; first < threads.size(); first = end) {
    for (end = first + 1; end < threads.size() && alike(threads[first], threads[end]);) ++end;
    const Thread& thread = threads[first];
    text += " threads " + std::to_string(first) + "-" + std::to_string(end - 1);
    text += thread.state == State::kExited ? std::string(" have ended;")
                                           : std::string(" wait at line ") +
                                                 std::to_string(thread.line) + " (" +
                                                 thread.waits_for + ");";
    if (text.size() > 3000) break;
  }
  text.back() = '.';
  fail(0, "block (%u, %u, %u): %s", blockIdx.x, blockIdx.y, blockIdx.z, text.c_str());
}

inline bool run_if_ready(Thread& thread) {
  if (thread.state == State::kPolling && thread.ready(thread.condition)) {
    thread.state = State::kReady;
  }
  if (thread.state != State::kReady) return false;
  resume(thread);
  return true;
}

// One turn over the threads; whether any could run. A warp runs on while it can, so that it gets as
// far ahead of the others as barriers let it.
inline bool turn() {
  bool ran = false;
  const auto& order = machine.order;
  for (Thread& thread : machine.threads) {
    if (thread.state == State::kGivesWay) thread.state = State::kReady;
  }
  for (size_t first = 0, end; first < order.size(); first = end) {
    const unsigned warp = order[first] / kWarp;
    for (end = first; end < order.size() && order[end] / kWarp == warp;) ++end;
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t i = first; i < end; ++i) goes_on |= run_if_ready(machine.threads[order[i]]);
      ran |= goes_on;
    }
  }
  return ran;
}

// One of the asynchronous events that are due, which come in no order.
inline void let_event_happen() {
  auto& events = machine.events;
  size_t which = 0;
  if (machine.launch->order == int(Order::kReverse)) which = events.size() - 1;
  if (machine.launch->order == int(Order::kShuffled)) which = machine.random() % events.size();
  const auto event = std::move(events[which]);
  events.erase(events.begin() + which);
  event();
}

// ---- Memory

inline size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

inline size_t static_shared_bytes() { return __stop_kernel_shared - __start_kernel_shared; }

// Shared addresses agree with the host's in the low ten bits, which swizzles and alignment are about.
inline uintptr_t static_window() {
  return reinterpret_cast<uintptr_t>(__start_kernel_shared) & ~uintptr_t{1023};
}

constexpr unsigned kStaticAt = 1024;  // where shared addresses start on the hardware

inline unsigned dynamic_at() {
  return kStaticAt + static_cast<unsigned>(rounded(
                         reinterpret_cast<uintptr_t>(__stop_kernel_shared) - static_window(), 1024));
}

inline unsigned to_shared(const void* pointer, int line) {
  const auto* byte = static_cast<const unsigned char*>(pointer);
  if (byte >= __start_kernel_shared && byte <= __stop_kernel_shared && __start_kernel_shared) {
    return kStaticAt + static_cast<unsigned>(reinterpret_cast<uintptr_t>(byte) - static_window());
  }
  if (byte >= dynamic_base && byte <= dynamic_base + machine.launch->shared_bytes) {
    return dynamic_at() + static_cast<unsigned>(byte - machine.dynamic_map);
  }
  fail(line, "a shared address of %p, which is not in shared memory", pointer);
}

inline unsigned char* from_shared(unsigned address, size_t bytes, const char* name, int line) {
  if (address % bytes) {
    fail(line, "%s: shared address %#x is not a multiple of %zu", name, address, bytes);
  }
  unsigned char *byte, *first, *end;
  if (address >= dynamic_at()) {
    byte = machine.dynamic_map + (address - dynamic_at());
    first = dynamic_base;
    end = dynamic_base + machine.launch->shared_bytes;
  } else {
    byte = reinterpret_cast<unsigned char*>(static_window()) + (address - kStaticAt);
    first = __start_kernel_shared;
    end = __stop_kernel_shared;
  }
  if (byte < first || byte + bytes > end) {
    fail(line, "%s: %zu bytes at shared address %#x are outside the block's shared memory (%td)",
         name, bytes, address, byte - first);
  }
  return byte;
}

inline bool is_poison(const void* memory, size_t bytes) {
  const auto* byte = static_cast<const unsigned char*>(memory);
  return std::all_of(byte, byte + bytes, [](unsigned char value) { return value == kPoison; });
}

inline void poison_shared() {
  if (__start_kernel_shared) memset(__start_kernel_shared, kPoison, static_shared_bytes());
  memset(machine.dynamic_map, kPoison, machine.dynamic_room);
}

inline void check_dynamic_end() {
  const unsigned char* end = dynamic_base + machine.launch->shared_bytes;
  for (const unsigned char* byte = end; byte < machine.dynamic_map + machine.dynamic_room; ++byte) {
    if (*byte != kPoison) {
      fail(0, "block (%u, %u, %u): a write %td bytes past the end of dynamic shared memory",
           blockIdx.x, blockIdx.y, blockIdx.z, byte - end);
    }
  }
}

inline unsigned char* reserve(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) fail(0, "no address space for %zu bytes", bytes);
  return static_cast<unsigned char*>(at);
}

// Flush to the zone behind it, but for the 16 bytes that vector loads need.
inline Region place(const Array& array) {
  Region region;
  const size_t room = rounded(std::max<size_t>(array.bytes, 1), kPage);
  region.array = array;
  region.map = reserve(room + 2 * kGuard);
  region.first = region.map + kGuard;
  region.last = region.first + room;
  region.data = region.last - rounded(array.bytes, 16);
  region.end = region.data + array.bytes;
  mprotect(region.first, room, PROT_READ | PROT_WRITE);
  memset(region.first, kPoison, room);
  memcpy(region.data, array.data, array.bytes);
  if (!array.writable) mprotect(region.first, room, PROT_READ);
  return region;
}

inline void check_around(const Region& region) {
  for (const unsigned char* byte = region.first; byte < region.last; ++byte) {
    if (byte == region.data) byte = region.end;
    if (byte < region.last && *byte != kPoison) {
      fail(0, "argument %d: a write %td bytes %s", region.array.argument,
           byte < region.data ? region.data - byte : byte - region.end,
           byte < region.data ? "before its start" : "past its end");
    }
  }
}

// ---- Faults

inline void told_address(const unsigned char* at, char* text, size_t size) {
  for (const Region& region : machine.regions) {
    if (at < region.map || at >= region.last + kGuard) continue;
    const int number = region.array.argument;
    if (at >= region.first && at < region.last) {
      snprintf(text, size, "a write to argument %d, which is read-only", number);
    } else if (at >= region.last) {
      snprintf(text, size, "an access %td bytes past the end of argument %d", at - region.end,
               number);
    } else {
      snprintf(text, size, "an access %td bytes before the start of argument %d", region.data - at,
               number);
    }
    return;
  }
  const unsigned char* dynamic = dynamic_base;
  if (at >= dynamic && at < dynamic + (1 << 20)) {
    snprintf(text, size, "an access %td bytes past the end of the dynamic shared memory",
             at - dynamic - static_cast<ptrdiff_t>(machine.launch->shared_bytes));
  } else if (at >= machine.stacks && at < machine.stacks + machine.threads.size() * kStack) {
    snprintf(text, size, "more than %zu KiB of local memory", kStack >> 10);
  } else {
    snprintf(text, size, "an access to %p, which is no memory of the kernel's", at);
  }
}

inline void* of_this_library() {
  Dl_info library = {};
  dladdr(&machine, &library);
  return library.dli_fbase;
}

inline void on_signal(int number, siginfo_t* info, void* state) {
  if (!machine.inside) {
    signal(number, SIG_DFL);
    return;
  }
  char what[512];
  if (number == SIGVTALRM) {
    snprintf(what, sizeof what, "the kernel runs for more than %g s", machine.launch->seconds);
  } else if (number == SIGFPE) {
    snprintf(what, sizeof what, "an integer division by zero");
  } else {
    told_address(static_cast<unsigned char*>(info->si_addr), what, sizeof what);
  }
#ifdef __x86_64__
  const auto at = static_cast<const ucontext_t*>(state)->uc_mcontext.gregs[REG_RIP];
  Dl_info library;
  if (dladdr(reinterpret_cast<void*>(at), &library) &&
      library.dli_fbase == of_this_library()) {
    machine.launch->fault_offset = at - reinterpret_cast<uintptr_t>(library.dli_fbase);
  }
#else
  (void)state;
#endif
  snprintf(machine.launch->message, sizeof machine.launch->message, "%s: %s", position().c_str(),
           what);
  abandon();
}

class Signals {  // ours while a kernel runs
 public:
  Signals(double seconds) : stack_(1 << 16) {
    stack_t stack = {};
    stack.ss_sp = stack_.data();
    stack.ss_size = stack_.size();
    sigaltstack(&stack, &old_stack_);
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int i = 0; i < kSignals; ++i) sigaction(kNumbers[i], &action, &old_[i]);
    itimerval timer = {};
    timer.it_value.tv_sec = static_cast<time_t>(seconds);
    timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - timer.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_VIRTUAL, &timer, nullptr);
  }
  ~Signals() {
    const itimerval none = {};
    setitimer(ITIMER_VIRTUAL, &none, nullptr);
    for (int i = 0; i < kSignals; ++i) sigaction(kNumbers[i], &old_[i], nullptr);
    sigaltstack(&old_stack_, nullptr);
  }

 private:
  static constexpr int kSignals = 4;
  static constexpr int kNumbers[kSignals] = {SIGSEGV, SIGBUS, SIGFPE, SIGVTALRM};
  std::vector<unsigned char> stack_;
  stack_t old_stack_;
  struct sigaction old_[kSignals];
};

// ---- A launch

inline void reset(Thread& thread) {
  thread.state = State::kReady;
  thread.atomics = 0;
  thread.copies.clear();
  thread.copy_groups.clear();
}

inline void run_block() {
  poison_shared();
  machine.living = machine.threads.size();
  for (Barrier& barrier : machine.barriers) barrier = {};
  for (Thread& thread : machine.threads) reset(thread);
  for (const auto prepare : machine.block_starts) prepare();
  while (machine.living) {
    if (turn()) continue;
    if (machine.events.empty()) fail_of_deadlock();
    let_event_happen();
  }
  for (const auto check : machine.block_ends) check();
  check_dynamic_end();
}

inline std::vector<unsigned> ordered(size_t count) {
  std::vector<unsigned> order(count);
  std::iota(order.begin(), order.end(), 0u);
  if (machine.launch->order == int(Order::kReverse)) std::reverse(order.begin(), order.end());
  if (machine.launch->order == int(Order::kShuffled)) {
    std::shuffle(order.begin(), order.end(), machine.random);
  }
  return order;
}

// The order of the threads: of the warps, and of the lanes within each.
inline std::vector<unsigned> ordered_by_warps(size_t threads) {
  std::vector<unsigned> order;
  for (unsigned warp : ordered((threads + kWarp - 1) / kWarp)) {
    for (unsigned lane : ordered(std::min<size_t>(kWarp, threads - warp * kWarp))) {
      order.push_back(warp * kWarp + lane);
    }
  }
  return order;
}

inline void make_threads() {
  const unsigned* block = machine.launch->block;
  machine.threads.resize(block[0] * block[1] * block[2]);
  machine.order = ordered_by_warps(machine.threads.size());
  machine.stacks = reserve(machine.threads.size() * kStack);
  for (size_t number = 0; number < machine.threads.size(); ++number) {
    Thread& thread = machine.threads[number];
    thread.started = false;
    thread.index.x = number % block[0];
    thread.index.y = number / block[0] % block[1];
    thread.index.z = number / block[0] / block[1];
    thread.number = number;
    thread.lane = number % kWarp;
    thread.warp = number / kWarp;
    mprotect(machine.stacks + number * kStack + kPage, kStack - kPage, PROT_READ | PROT_WRITE);
  }
}

// As aligned as its declaration asks for and no more, so that who needs more must say so.
inline void make_dynamic_shared(size_t alignment) {
  const size_t offset = alignment < 1024 ? alignment : 0;
  const size_t bytes = machine.launch->shared_bytes;
  machine.dynamic_room = rounded(offset + bytes + 1, kPage);
  machine.dynamic_map = reserve(machine.dynamic_room + kGuard);
  mprotect(machine.dynamic_map, machine.dynamic_room, PROT_READ | PROT_WRITE);
  dynamic_base = machine.dynamic_map + offset;
  if (static_shared_bytes() > kMaxStaticShared) {
    fail(0, "%zu bytes of static shared memory; %zu are allowed", static_shared_bytes(),
         kMaxStaticShared);
  }
  if (static_shared_bytes() + bytes > kMaxShared) {
    fail(0, "%zu bytes of shared memory; %zu are allowed", static_shared_bytes() + bytes,
         kMaxShared);
  }
}

inline void run_grid(size_t shared_alignment) {
  Launch& launch = *machine.launch;
  gridDim = dim3(launch.grid[0], launch.grid[1], launch.grid[2]);
  blockDim = dim3(launch.block[0], launch.block[1], launch.block[2]);
  for (int i = 0; i < launch.array_count; ++i) {
    const Region region = place(launch.arrays[i]);
    machine.regions.push_back(region);
    launch.arrays[i].placed = region.data;
  }
  make_threads();
  make_dynamic_shared(shared_alignment);
  machine.inside = true;
  for (unsigned number : ordered(size_t{1} * gridDim.x * gridDim.y * gridDim.z)) {
    blockIdx = {number % gridDim.x, number / gridDim.x % gridDim.y, number / gridDim.x / gridDim.y};
    run_block();
  }
  machine.inside = false;
  for (const Region& region : machine.regions) {
    check_around(region);
    if (region.array.writable) memcpy(region.array.data, region.data, region.array.bytes);
  }
}

inline int run(Launch& launch, void (*body)(void**), size_t shared_alignment) {
  machine.launch = &launch;
  machine.body = body;
  machine.random.seed(launch.seed);
  Signals signals(launch.seconds);
  const bool done = !sigsetjmp(machine.abandoned, 1);
  if (done) run_grid(shared_alignment);
  machine.inside = false;
  for (const Region& region : machine.regions) {
    munmap(region.map, region.last - region.first + 2 * kGuard);
  }
  if (machine.stacks) munmap(machine.stacks, machine.threads.size() * kStack);
  if (machine.dynamic_map) munmap(machine.dynamic_map, machine.dynamic_room + kGuard);
  return done;
}

// ---- The kernel's parameters

template <class T>
std::string described() {
  const std::string bytes = std::to_string(sizeof(T));
  if constexpr (std::is_pointer_v<T>) {
    using Pointee = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_arithmetic_v<Pointee>) return "*" + described<Pointee>();
    return "*";
  } else if constexpr (std::is_same_v<T, bool>) {
    return "b1";
  } else if constexpr (std::is_floating_point_v<T>) {
    return "f" + bytes;
  } else if constexpr (std::is_integral_v<T>) {
    return (std::is_signed_v<T> ? "i" : "u") + bytes;
  } else {
    return "V" + bytes;
  }
}

template <class... Parameters>
std::string signature(void (*)(Parameters...)) {
  std::string text;
  ((text += described<std::remove_cv_t<Parameters>>() + " "), ...);
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

// ---- What -fsanitize reports

struct SourceLocation {
  const char* file;
  uint32_t line, column;
};

struct TypeDescriptor {
  uint16_t kind, info;
  char name[1];
};

struct TypeMismatch {
  SourceLocation where;
  const TypeDescriptor* type;
  unsigned char log_alignment, kind;
};

struct OutOfBounds {
  SourceLocation where;
  const TypeDescriptor *array, *index;
};

}  // namespace emulator

extern "C" void
__ubsan_handle_type_mismatch_v1_abort(emulator::TypeMismatch* data, uintptr_t pointer) {
  emulator::fail(data->where.line, "a misaligned access to %s: the address is %zu past a multiple of %u",
                 data->type->name, pointer % (1u << data->log_alignment), 1u << data->log_alignment);
}

extern "C" void
__ubsan_handle_out_of_bounds_abort(emulator::OutOfBounds* data, uintptr_t index) {
  emulator::fail(data->where.line, "index %td is outside of %s", static_cast<ptrdiff_t>(index),
                 data->array->name);
}
