// How threads take turns, meet and wait.

#include "runtime.h"

#include <numeric>
#include <string>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulator {

Machine machine;
Thread* current;

static Fiber& self() { return static_cast<Fiber&>(*current); }

// ---- Switching

static void suspend() {
  if (!_setjmp(self().context)) _longjmp(machine.scheduler, 1);
}

static void leave();

static void fiber() {
  for (;;) {
    machine.body(machine.launch->arguments);
    leave();
    suspend();
  }
}

__attribute__((noinline)) static void resume(Fiber& thread) {
  current = &thread;
  threadIdx = thread.index;
  if (!_setjmp(machine.scheduler)) {
    if (thread.started) _longjmp(thread.context, 1);
    thread.started = true;
    getcontext(&machine.start);
    machine.start.uc_stack.ss_sp = machine.stacks + thread.number * kStack + kPage;
    machine.start.uc_stack.ss_size = kStack - kPage;
    machine.start.uc_link = nullptr;
    makecontext(&machine.start, fiber, 0);
    setcontext(&machine.start);
  }
  current = nullptr;
}

void let_others_run() {
  self().state = State::kGivesWay;
  suspend();
}

void poll(bool (*ready)(const void*), const void* condition, const char* name, int line) {
  if (ready(condition)) return;
  Fiber& thread = self();
  thread.ready = ready;
  thread.condition = condition;
  thread.state = State::kPolling;
  thread.waits_for = name;
  thread.line = line;
  suspend();
}

void note_atomic() {
  machine.launch->used_atomics = 1;
  if (++current->atomics % 16 == 0) let_others_run();  // it may spin
}

long long tick() {
  let_others_run();
  return ++machine.clock;
}

// ---- Collectives

unsigned living_lanes(unsigned warp) {
  unsigned mask = 0;
  for (unsigned lane = 0; lane < kWarp && warp * kWarp + lane < machine.threads.size(); ++lane) {
    if (machine.threads[warp * kWarp + lane].state != State::kExited) mask |= 1u << lane;
  }
  return mask;
}

// Complete the collective that `first` waits in if every living lane of its mask is there.
static bool try_complete(Fiber& first) {
  const unsigned scope = first.scope, start = first.number / scope * scope;
  unsigned mask = 0;
  Thread* lanes[kWarpgroup] = {};
  for (unsigned number = start; number < start + scope; ++number) {
    Fiber* other = number < machine.threads.size() ? &machine.threads[number] : nullptr;
    if (!other || other->state == State::kExited) {
      if (!first.aligned) continue;
      fail(first.line, "%s needs threads %u to %u, and %u has ended", first.waits_for, start,
           start + scope - 1, number);
    }
    if (!(first.mask >> other->lane & 1)) continue;
    if (other->state != State::kCollective || other->complete != first.complete ||
        other->mask != first.mask) {
      return false;
    }
    lanes[number - start] = other;
    mask |= 1u << other->lane;
  }
  first.complete(lanes, mask);
  for (Thread* other : lanes) {
    if (other) static_cast<Fiber*>(other)->state = State::kReady;
  }
  return true;
}

static void meet(const char* name, unsigned mask, void* payload, Complete complete, int line,
                 unsigned scope, bool aligned) {
  Fiber& thread = self();
  if (!(mask >> thread.lane & 1)) {
    fail(line, "%s by a lane that is not in its mask %#x", name, mask);
  }
  thread.mask = mask;
  thread.scope = scope;
  thread.aligned = aligned;
  thread.payload = payload;
  thread.complete = complete;
  thread.state = State::kCollective;
  thread.waits_for = name;
  thread.line = line;
  if (!try_complete(thread)) suspend();
}

void collective(const char* name, unsigned mask, void* payload, Complete complete, int line) {
  meet(name, mask, payload, complete, line, kWarp, false);
}

void aligned_collective(const char* name, void* payload, Complete complete, int line,
                        unsigned scope) {
  meet(name, ~0u, payload, complete, line, scope, true);
}

// ---- Barriers

static void release_if_full(int id) {
  Barrier& barrier = machine.barriers[id];
  const unsigned expected = barrier.expected ? barrier.expected : machine.living;
  if (!barrier.arrived || barrier.arrived < expected) return;
  if (barrier.arrived > expected) {
    fail(barrier.line, "%u threads came to barrier %d of %u", barrier.arrived, id, expected);
  }
  for (Fiber& thread : machine.threads) {
    if (thread.state != State::kBarrier || thread.barrier != id) continue;
    thread.votes = barrier.votes;
    thread.state = State::kReady;
  }
  barrier = {};
}

unsigned barrier_arrive(const char* name, int id, unsigned expected, bool vote, bool waits,
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
  Fiber& thread = self();
  thread.barrier = id;
  if (waits) {
    thread.state = State::kBarrier;
    thread.waits_for = name;
    thread.line = line;
  }
  release_if_full(id);
  if (waits && thread.state == State::kBarrier) suspend();
  return thread.votes;
}

static void leave() {
  Fiber& thread = self();
  thread.state = State::kExited;
  --machine.living;
  for (Fiber& other : machine.threads) {
    if (other.state == State::kCollective && other.warp == thread.warp &&
        other.mask >> thread.lane & 1) {
      try_complete(other);
    }
  }
  for (int id = 0; id < kBarriers; ++id) {
    if (!machine.barriers[id].expected) release_if_full(id);
  }
}

// ---- Turns

static bool runs_in(Order order) { return machine.launch->order == static_cast<int>(order); }

std::vector<unsigned> ordered(size_t count) {
  std::vector<unsigned> order(count);
  std::iota(order.begin(), order.end(), 0u);
  if (runs_in(Order::kReverse)) std::reverse(order.begin(), order.end());
  if (runs_in(Order::kShuffled)) std::shuffle(order.begin(), order.end(), machine.random);
  return order;
}

// The order of the threads: of the warps, and of the lanes within each.
std::vector<unsigned> ordered_by_warps(size_t threads) {
  std::vector<unsigned> order;
  for (unsigned warp : ordered((threads + kWarp - 1) / kWarp)) {
    for (unsigned lane : ordered(std::min<size_t>(kWarp, threads - warp * kWarp))) {
      order.push_back(warp * kWarp + lane);
    }
  }
  return order;
}

static bool run_if_ready(Fiber& thread) {
  if (thread.state == State::kPolling && thread.ready(thread.condition)) {
    thread.state = State::kReady;
  }
  if (thread.state != State::kReady) return false;
  resume(thread);
  return true;
}

// One turn over the threads; whether any could run. A warp runs on while it can, so that it gets as
// far ahead of the others as barriers let it.
static bool turn() {
  bool ran = false;
  const auto& order = machine.order;
  for (Fiber& thread : machine.threads) {
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
static void let_event_happen() {
  auto& events = machine.events;
  size_t which = 0;
  if (runs_in(Order::kReverse)) which = events.size() - 1;
  if (runs_in(Order::kShuffled)) which = machine.random() % events.size();
  const auto event = std::move(events[which]);
  events.erase(events.begin() + which);
  event();
}

[[noreturn]] static void fail_of_deadlock() {
  std::string text = "deadlock, no thread can go on:";
  const auto alike = [](const Fiber& a, const Fiber& b) {
    return a.state == b.state && (a.state == State::kExited ||
                                  (a.line == b.line && !strcmp(a.waits_for, b.waits_for)));
  };
  const std::vector<Fiber>& threads = machine.threads;
  for (size_t first = 0, end; first < threads.size(); first = end) {
    for (end = first + 1; end < threads.size() && alike(threads[first], threads[end]);) ++end;
    const Fiber& thread = threads[first];
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

void run_threads() {
  machine.living = machine.threads.size();
  for (Barrier& barrier : machine.barriers) barrier = {};
  for (Fiber& thread : machine.threads) {
    thread.state = State::kReady;
    thread.atomics = 0;
  }
  while (machine.living) {
    if (turn()) continue;
    if (machine.events.empty()) fail_of_deadlock();
    let_event_happen();
  }
}

}  // namespace emulator
