// A launch from its start to its end, good or bad.

#include "runtime.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <algorithm>
#include <string>

namespace emulator {

// ---- Faults

static std::string position() {
  if (!current) return "";
  const Fiber& thread = static_cast<const Fiber&>(*current);
  char text[160];
  snprintf(text, sizeof text, "block (%u, %u, %u), thread (%u, %u, %u)", blockIdx.x, blockIdx.y,
           blockIdx.z, thread.index.x, thread.index.y, thread.index.z);
  return text;
}

void fail(int line, const char* format, ...) {
  char what[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  std::string where = position();
  if (line) where += (where.empty() ? "line " : ", line ") + std::to_string(line);
  snprintf(machine.launch->message, sizeof machine.launch->message, "%s%s%s", where.c_str(),
           where.empty() ? "" : ": ", what);
  siglongjmp(machine.abandoned, 1);
}

static void told_address(const unsigned char* at, char* text, size_t size) {
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
  const unsigned char* end = dynamic_base + machine.launch->shared_bytes;
  if (at >= end && at < end + kGuard) {
    snprintf(text, size, "an access %td bytes past the end of dynamic shared memory", at - end);
  } else if (at >= machine.stacks && at < machine.stacks + machine.threads.size() * kStack) {
    snprintf(text, size, "more than %zu KiB of local memory", kStack >> 10);
  } else {
    snprintf(text, size, "an access to %p, which is no memory of the kernel's", at);
  }
}

static void* of_this_library() {
  Dl_info library = {};
  dladdr(&machine, &library);
  return library.dli_fbase;
}

static void on_signal(int number, siginfo_t* info, void* state) {
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
  siglongjmp(machine.abandoned, 1);
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

// ---- The run

static void run_block() {
  poison_shared();
  machine.events.clear();
  start_copies();
  start_hopper();
  run_threads();
  end_hopper();
  check_dynamic_end();
}

static void make_threads() {
  const unsigned* block = machine.launch->block;
  machine.threads.resize(block[0] * block[1] * block[2]);
  machine.order = ordered_by_warps(machine.threads.size());
  machine.stacks = reserve(machine.threads.size() * kStack);
  for (size_t number = 0; number < machine.threads.size(); ++number) {
    Fiber& thread = machine.threads[number];
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

static void run_grid(size_t shared_alignment) {
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
  const size_t all = size_t{1} * gridDim.x * gridDim.y * gridDim.z;
  for (unsigned turn : ordered(launch.blocks ? launch.block_count : all)) {
    const unsigned number = launch.blocks ? launch.blocks[turn] : turn;
    blockIdx = {number % gridDim.x, number / gridDim.x % gridDim.y, number / gridDim.x / gridDim.y};
    run_block();
  }
  machine.inside = false;
  for (const Region& region : machine.regions) {
    check_around(region);
    if (region.array.writable) memcpy(region.array.data, region.data, region.array.bytes);
  }
}

int run(Launch& launch, void (*body)(void**), std::initializer_list<size_t> shared_alignments) {
  machine.launch = &launch;
  machine.body = body;
  machine.random.seed(launch.seed);
  Signals signals(launch.seconds);
  const bool done = !sigsetjmp(machine.abandoned, 1);
  if (done) run_grid(std::max(shared_alignments));
  machine.inside = false;
  for (const Region& region : machine.regions) {
    munmap(region.map, region.last - region.first + 2 * kGuard);
  }
  if (machine.stacks) munmap(machine.stacks, machine.threads.size() * kStack);
  if (machine.dynamic_map) munmap(machine.dynamic_map, machine.dynamic_room + kGuard);
  return done;
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

extern "C" void __ubsan_handle_type_mismatch_v1_abort(emulator::TypeMismatch* data,
                                                      uintptr_t pointer) {
  const unsigned alignment = 1u << data->log_alignment;
  emulator::fail(data->where.line,
                 "a misaligned access to %s: the address is %zu past a multiple of %u",
                 data->type->name, pointer % alignment, alignment);
}

extern "C" void __ubsan_handle_out_of_bounds_abort(emulator::OutOfBounds* data, uintptr_t index) {
  emulator::fail(data->where.line, "index %td is outside of %s", static_cast<ptrdiff_t>(index),
                 data->array->name);
}
