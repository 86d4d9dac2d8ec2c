// A streaming multiprocessor as seen by one block at a time: threads are fibers that run until they
// wait for each other, shared memory is poisoned at a block's start, global arrays lie between
// guard zones, and whatever is wrong ends the run with a message.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <deque>
#include <functional>
#include <random>
#include <vector>

#include <machine.h>

namespace emulator {

constexpr unsigned char kPoison = 0xFF;  // NaN in every floating type
constexpr size_t kPage = 4096;
constexpr size_t kStack = 256 << 10;
constexpr size_t kGuard = size_t{1} << 30;  // around a global array
constexpr int kBarriers = 16;

enum class Order { kForward, kReverse, kShuffled };
enum class State { kReady, kGivesWay, kCollective, kBarrier, kPolling, kExited };

struct Fiber : Thread {
  jmp_buf context;
  bool started;
  uint3 index;
  State state;
  const char* waits_for;
  int line;
  unsigned mask;      // of the collective it waits in: lanes, of each of its warps
  unsigned scope;     // of the collective: 32 threads or 128
  bool aligned;       // all of the scope must live
  Complete complete;  // which collective
  int barrier;
  unsigned votes;  // what a barrier with a predicate found
  bool (*ready)(const void*);
  const void* condition;
};

struct Barrier {
  unsigned arrived, expected, votes;
  int line;
};

struct Region {  // a global array
  unsigned char *map, *first, *data, *end, *last;  // map: with guards; first to last: accessible
  Array array;
};

struct Machine {
  Launch* launch;
  void (*body)(void**);
  std::vector<Fiber> threads;
  std::vector<unsigned> order;
  unsigned living;
  Barrier barriers[kBarriers];
  std::vector<Region> regions;
  std::deque<std::function<void()>> events;  // what is asynchronous, and due
  std::mt19937 random;
  unsigned char* stacks;
  unsigned char* dynamic_map;
  size_t dynamic_room;
  jmp_buf scheduler;
  sigjmp_buf abandoned;
  ucontext_t start;
  long long clock;
  bool inside;  // of a kernel
};

extern Machine machine;

// fibers.cpp
void run_threads();  // of a block, to their end
std::vector<unsigned> ordered(size_t count);
std::vector<unsigned> ordered_by_warps(size_t threads);

// memory.cpp
bool is_poison(const void* memory, size_t bytes);
size_t static_shared_bytes();
unsigned char* reserve(size_t bytes);
Region place(const Array& array);
void check_around(const Region& region);
void make_dynamic_shared(size_t alignment);
void poison_shared();
void check_dynamic_end();

// ptx.cpp, hopper.cpp
float from_half(uint16_t bits);
float from_bfloat16(uint16_t bits);
void start_copies();
void start_hopper();
void end_hopper();

}  // namespace emulator
