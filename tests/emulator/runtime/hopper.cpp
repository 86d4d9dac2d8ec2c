// mbarriers, TMA and wgmma, as the PTX ISA and CUTLASS's canonical layouts define them.

#include <hopper.h>

#include <algorithm>
#include <map>

#include "runtime.h"

namespace emulator {

// ---- mbarriers

struct Mbarrier {
  unsigned arrivals, pending, parity;
  long long bytes;  // of transactions still to come
};

constexpr unsigned long long kMbarrierMark = 0x5AB1E5AB1E5AB1E5;
std::map<unsigned, Mbarrier> mbarriers;  // by shared address; in memory is only the mark

Mbarrier& mbarrier_at(unsigned address, const char* name, int line) {
  unsigned long long mark;
  memcpy(&mark, from_shared(address, 8, name, line), sizeof mark);
  const auto found = mbarriers.find(address);
  if (found == mbarriers.end() || mark != kMbarrierMark) {
    fail(line, "%s: the mbarrier at %#x is not initialised, or was overwritten", name, address);
  }
  return found->second;
}

void end_phase_if_complete(Mbarrier& barrier) {
  if (barrier.pending || barrier.bytes) return;
  barrier.parity ^= 1;
  barrier.pending = barrier.arrivals;
}

void arrive(unsigned address, const char* name, int line) {
  Mbarrier& barrier = mbarrier_at(address, name, line);
  if (!barrier.pending) {
    fail(line, "%s: more than the mbarrier's %u arrivals", name, barrier.arrivals);
  }
  --barrier.pending;
  end_phase_if_complete(barrier);
}

void complete_bytes(unsigned address, long long bytes, int line) {
  Mbarrier& barrier = mbarrier_at(address, "complete_tx", line);
  barrier.bytes -= bytes;
  end_phase_if_complete(barrier);
}

void mbarrier_init(unsigned barrier, unsigned arrivals, int line) {
  memcpy(from_shared(barrier, 8, "mbarrier.init", line), &kMbarrierMark, sizeof kMbarrierMark);
  mbarriers[barrier] = {arrivals, arrivals, 0, 0};
}

void mbarrier_arrive(unsigned barrier, int line) { arrive(barrier, "mbarrier.arrive", line); }

void mbarrier_arrive_expect(unsigned barrier, unsigned bytes, int line) {
  mbarrier_at(barrier, "mbarrier.arrive.expect_tx", line).bytes += bytes;
  arrive(barrier, "mbarrier.arrive.expect_tx", line);
}

struct Phase {
  unsigned barrier, parity;
  int line;
};

bool phase_over(const void* phase) {
  const auto [barrier, parity, line] = *static_cast<const Phase*>(phase);
  return mbarrier_at(barrier, "mbarrier.try_wait", line).parity != parity;
}

bool mbarrier_passed(unsigned barrier, unsigned parity, int line) {
  if (parity > 1) fail(line, "mbarrier.try_wait with a parity of %u", parity);
  const Phase phase = {barrier, parity, line};
  poll(phase_over, &phase, "mbarrier.try_wait", line);
  return true;
}

// ---- TMA

struct Tensor {  // what stands in the kernel's 128 bytes of a tensor map; Python fills it
  unsigned long long mark;
  int array, rank, element, swizzle;
  unsigned extent[5], box[5];  // the innermost first
  unsigned long long stride[5];
};
static_assert(sizeof(Tensor) <= 128);
constexpr unsigned long long kTensorMark = 0x7E4503A97E4503A9;

unsigned swizzled(unsigned address, int span) {
  return address ^ ((address >> 3) & (span - 16) & 0x70);
}

Tensor tensor_of(const void* map, const char* name, int line) {
  Tensor tensor;
  memcpy(&tensor, map, sizeof tensor);
  if (tensor.mark != kTensorMark) fail(line, "%s: this is no tensor map", name);
  return tensor;
}

void prefetch_tensor_map(const void* map, int line) { tensor_of(map, "prefetch.tensormap", line); }

class Box {  // a tile of a tensor, and the same bytes in shared memory
 public:
  Box(const void* map, std::initializer_list<int> first, unsigned shared, const char* name,
      int line)
      : shared_(shared), name_(name), line_(line) {
    tensor_ = tensor_of(map, name, line);
    if (tensor_.rank != static_cast<int>(first.size())) {
      fail(line, "%s: the tensor map has rank %d", name, tensor_.rank);
    }
    std::copy(first.begin(), first.end(), first_);
    if (shared % 128) fail(line, "%s: shared address %#x is not a multiple of 128", name, shared);
    for (unsigned chunk = 0; chunk < bytes(); chunk += 16) (void)at(chunk);
  }

  unsigned bytes() const {
    unsigned bytes = tensor_.element;
    for (int i = 0; i < tensor_.rank; ++i) bytes *= tensor_.box[i];
    return bytes;
  }

  void poison() const {
    for (unsigned chunk = 0; chunk < bytes(); chunk += 16) memset(at(chunk), kPoison, 16);
  }

  void load() const {
    for (unsigned chunk = 0; chunk < bytes(); chunk += 16) {
      if (!is_poison(at(chunk), 16)) {
        fail(line_, "the target of %s was written before it came", name_);
      }
      for (unsigned byte = 0; byte < 16; byte += tensor_.element) {
        const unsigned char* from = global(chunk + byte);
        if (from) memcpy(at(chunk) + byte, from, tensor_.element);
        else memset(at(chunk) + byte, 0, tensor_.element);
      }
    }
  }

  std::vector<unsigned char> content() const {
    std::vector<unsigned char> content;
    for (unsigned chunk = 0; chunk < bytes(); chunk += 16) {
      content.insert(content.end(), at(chunk), at(chunk) + 16);
    }
    return content;
  }

  void store(const std::vector<unsigned char>& issued) const {
    if (content() != issued) fail(line_, "shared memory changed while %s read it", name_);
    for (unsigned chunk = 0; chunk < bytes(); chunk += 16) {
      for (unsigned byte = 0; byte < 16; byte += tensor_.element) {
        unsigned char* to = global(chunk + byte);
        if (to) memcpy(to, at(chunk) + byte, tensor_.element);
      }
    }
  }

 private:
  // 16 bytes of shared memory, at an offset into the box.
  unsigned char* at(unsigned offset) const {
    const unsigned address = shared_ + offset;
    return from_shared(tensor_.swizzle ? swizzled(address, tensor_.swizzle) : address, 16, name_,
                       line_);
  }

  // An element of global memory at an offset into the box; null outside of the tensor.
  unsigned char* global(unsigned offset) const {
    unsigned long long bytes = 0;
    unsigned rest = offset / tensor_.element;
    for (int i = 0; i < tensor_.rank; ++i) {
      const long long index = first_[i] + static_cast<long long>(rest % tensor_.box[i]);
      rest /= tensor_.box[i];
      if (index < 0 || index >= tensor_.extent[i]) return nullptr;
      bytes += index * tensor_.stride[i];
    }
    return machine.regions[tensor_.array].data + bytes;
  }

  Tensor tensor_;
  int first_[5];
  unsigned shared_;
  const char* name_;
  int line_;
};

void tma_load(unsigned to, const void* map, std::initializer_list<int> first, unsigned barrier,
              int line) {
  const Box box(map, first, to, "a TMA load", line);
  box.poison();
  machine.events.push_back([=] {
    box.load();
    complete_bytes(barrier, box.bytes(), line);
  });
}

struct Store {
  Box box;
  std::vector<unsigned char> issued;  // what it is to store
};

struct Stores {
  std::vector<Store> open, committed;
};

std::map<const Thread*, Stores> tma_stores;
bool proxy_fenced;

void fence_proxy_async() { proxy_fenced = true; }

void tma_store(const void* map, std::initializer_list<int> first, unsigned from, int line) {
  if (!proxy_fenced) fail(line, "a TMA store without a fence_proxy_async before it");
  const Box box(map, first, from, "a TMA store", line);
  tma_stores[current].open.push_back({box, box.content()});
}

void tma_store_commit() {
  Stores& stores = tma_stores[current];
  for (Store& store : stores.open) stores.committed.push_back(std::move(store));
  stores.open.clear();
}

void tma_store_wait_read() {
  let_others_run();
  for (const Store& store : tma_stores[current].committed) store.box.store(store.issued);
  tma_stores[current].committed.clear();
}

// ---- wgmma

using Operand = std::vector<uint16_t>;  // rows of M or N by 16 of K

// An operand in shared memory, as the matrix descriptor tells.
Operand read_operand(int rows, unsigned long long descriptor, bool transposed, int line) {
  const unsigned start = (descriptor & 0x3FFF) << 4, leading = (descriptor >> 16 & 0x3FFF) << 4,
                 stride = (descriptor >> 32 & 0x3FFF) << 4;
  if (descriptor >> 49 & 7) fail(line, "a matrix descriptor with a base offset");
  constexpr unsigned kSpans[] = {16, 128, 64, 32};  // bytes of a swizzled row
  const unsigned span = kSpans[descriptor >> 62], chunks = span / 16;
  Operand operand(rows * 16);
  const auto read = [&](unsigned address, auto element_at) {
    uint16_t elements[8];
    const unsigned swizzled_address = span > 16 ? swizzled(address, span) : address;
    memcpy(elements, from_shared(swizzled_address, 16, "wgmma", line), sizeof elements);
    for (int i = 0; i < 8; ++i) operand[element_at(i)] = elements[i];
  };
  if (!transposed) {
    const unsigned second = span > 16 ? 16 : leading;  // eight elements of K further
    for (int row = 0; row < rows; ++row) {
      for (int half = 0; half < 2; ++half) {
        read(start + row / 8 * stride + row % 8 * span + half * second,
             [&](int i) { return 16 * row + 8 * half + i; });
      }
    }
    return operand;
  }
  const unsigned next_rows = span > 16 ? leading : stride, next_k = span > 16 ? stride : leading;
  for (int k = 0; k < 16; ++k) {
    for (int chunk = 0; chunk < rows / 8; ++chunk) {
      read(start + chunk / chunks * next_rows + chunk % chunks * 16 + k / 8 * next_k + k % 8 * span,
           [&](int i) { return 16 * (8 * chunk + i) + k; });
    }
  }
  return operand;
}

// A from the registers of a warpgroup.
Operand gather_operand(const unsigned (*registers)[4]) {
  Operand operand(64 * 16);
  for (unsigned thread = 0; thread < kWarpgroup; ++thread) {
    for (int i = 0; i < 4; ++i) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
      const int k = thread % 4 * 2 + i / 2 * 8;
      operand[16 * row + k] = static_cast<uint16_t>(registers[thread][i]);
      operand[16 * row + k + 1] = static_cast<uint16_t>(registers[thread][i] >> 16);
    }
  }
  return operand;
}

struct Accumulators {  // of one thread and array, while products are on their way to it
  float* d;
  std::vector<float> values;
  unsigned last_group;
};

struct Product {
  unsigned group;
  int columns;
  bool a_in_registers, accumulate, b_transposed, bf16;
  unsigned long long a, b;
  Operand a_issued, b_issued;  // what it multiplies
  float* d[kWarpgroup];
  int line;
};

struct Warpgroup {
  std::deque<Product> queue;
  std::vector<Accumulators> accumulators[kWarpgroup];
  unsigned committed[kWarpgroup];
  unsigned wanted;  // groups before this one are waited for
  bool fenced[kWarpgroup];
};

std::map<unsigned, Warpgroup> warpgroups;

Warpgroup& own_warpgroup() { return warpgroups[current->number / kWarpgroup]; }

Accumulators* find(std::vector<Accumulators>& all, const float* d) {
  for (Accumulators& one : all) {
    if (one.d == d) return &one;
  }
  return nullptr;
}

void check_untouched(const Accumulators& one, int line) {
  if (!is_poison(one.d, one.values.size() * sizeof(float))) {
    fail(line, "accumulators were written while a wgmma was at work on them");
  }
}

// Where the element i of a thread's accumulators stands in the 64 by N matrix.
int row_of(unsigned thread, int i) { return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8; }
int column_of(unsigned thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

__attribute__((optimize("O3"))) void execute(Warpgroup& group, const Product& product) {
  static float a[64][16], b[16][256], d[64][256];
  const int columns = product.columns, line = product.line;
  if ((!product.a_in_registers && read_operand(64, product.a, false, line) != product.a_issued) ||
      read_operand(columns, product.b, product.b_transposed, line) != product.b_issued) {
    fail(line, "shared memory changed while a wgmma read it");
  }
  const auto from_element = product.bf16 ? from_bfloat16 : from_half;
  for (int i = 0; i < 64 * 16; ++i) a[i / 16][i % 16] = from_element(product.a_issued[i]);
  for (int i = 0; i < columns * 16; ++i) b[i % 16][i / 16] = from_element(product.b_issued[i]);
  std::vector<float>* values[kWarpgroup];
  for (unsigned thread = 0; thread < kWarpgroup; ++thread) {
    values[thread] = &find(group.accumulators[thread], product.d[thread])->values;
    for (int i = 0; i < columns / 2; ++i) {
      d[row_of(thread, i)][column_of(thread, i)] = product.accumulate ? (*values[thread])[i] : 0.0f;
    }
  }
  for (int row = 0; row < 64; ++row) {
    for (int k = 0; k < 16; ++k) {
      const float factor = a[row][k];
      for (int column = 0; column < columns; ++column) d[row][column] += factor * b[k][column];
    }
  }
  for (unsigned thread = 0; thread < kWarpgroup; ++thread) {
    for (int i = 0; i < columns / 2; ++i) {
      (*values[thread])[i] = d[row_of(thread, i)][column_of(thread, i)];
    }
  }
}

void execute_before(Warpgroup& group, unsigned end) {
  while (!group.queue.empty() && group.queue.front().group < end) {
    execute(group, group.queue.front());
    group.queue.pop_front();
  }
}

struct Wait {
  const Warpgroup* group;
  unsigned done;
};

bool products_done(const void* wait) {
  const auto [group, done] = *static_cast<const Wait*>(wait);
  return group->queue.empty() || group->queue.front().group >= done;
}

void queue_product(Thread** lanes, unsigned) {
  const auto part = [&](unsigned thread) { return *static_cast<Issue*>(lanes[thread]->payload); };
  const Issue first = part(0);
  Warpgroup& group = warpgroups[lanes[0]->number / kWarpgroup];
  unsigned a_registers[kWarpgroup][4];
  Product product;
  product.group = group.committed[0];
  product.columns = first.columns;
  product.a_in_registers = first.a_registers != nullptr;
  product.accumulate = first.accumulate;
  product.b_transposed = first.b_transposed;
  product.bf16 = first.bf16;
  product.a = first.a;
  product.b = first.b;
  product.line = first.line;
  for (unsigned thread = 0; thread < kWarpgroup; ++thread) {
    const Issue issue = part(thread);
    if (issue.a != first.a || issue.b != first.b || issue.accumulate != first.accumulate ||
        issue.columns != first.columns || group.committed[thread] != group.committed[0]) {
      fail(first.line, "threads of a warpgroup meet at a wgmma with different operands");
    }
    if (!group.fenced[thread]) {
      fail(first.line, "a wgmma without a wgmma.fence since the last wait");
    }
    if (issue.a_registers) memcpy(a_registers[thread], issue.a_registers, 16);
    product.d[thread] = issue.d;
    std::vector<Accumulators>& all = group.accumulators[thread];
    Accumulators* one = find(all, issue.d);
    if (one) {
      check_untouched(*one, first.line);
    } else {
      all.push_back({issue.d, std::vector<float>(issue.d, issue.d + first.columns / 2), 0});
      one = &all.back();
      memset(issue.d, kPoison, first.columns / 2 * sizeof(float));
    }
    one->last_group = product.group;
  }
  product.a_issued = first.a_registers ? gather_operand(a_registers)
                                       : read_operand(64, first.a, false, first.line);
  product.b_issued = read_operand(first.columns, first.b, first.b_transposed, first.line);
  group.queue.push_back(std::move(product));
}

void wgmma(Issue& issue) {
  aligned_collective("wgmma", &issue, queue_product, issue.line, kWarpgroup);
}

void wgmma_fence() { own_warpgroup().fenced[current->number % kWarpgroup] = true; }

void wgmma_commit() { ++own_warpgroup().committed[current->number % kWarpgroup]; }

void wait_for_products(unsigned pending, int line) {
  aligned_collective("wgmma.wait_group", nullptr, no_exchange, line);
  Warpgroup& group = own_warpgroup();
  const unsigned thread = current->number % kWarpgroup, committed = group.committed[thread];
  const unsigned done = committed > pending ? committed - pending : 0;  // groups before this one
  group.fenced[thread] = false;
  const Wait wait = {&group, done};
  if (group.wanted < done && !products_done(&wait)) {
    group.wanted = done;
    machine.events.push_back([&group, done] { execute_before(group, done); });
  }
  poll(products_done, &wait, "wgmma.wait_group", line);
  std::vector<Accumulators>& all = group.accumulators[thread];
  for (size_t i = all.size(); i-- > 0;) {
    if (all[i].last_group >= done) continue;
    check_untouched(all[i], line);
    std::copy(all[i].values.begin(), all[i].values.end(), all[i].d);
    all.erase(all.begin() + i);
  }
}

// ---- Blocks

void start_hopper() {
  mbarriers.clear();
  tma_stores.clear();
  warpgroups.clear();
  proxy_fenced = false;
}

void end_hopper() {
  if (!machine.events.empty()) fail(0, "a block ends while a TMA load is on its way");
  for (const auto& [thread, stores] : tma_stores) {
    if (!stores.open.empty() || !stores.committed.empty()) {
      fail(0, "thread %u ends without a wait for its TMA stores", thread->number);
    }
  }
  for (const auto& [number, group] : warpgroups) {
    for (const auto& accumulators : group.accumulators) {
      if (!accumulators.empty()) fail(0, "warpgroup %u ends without a wait for its wgmma", number);
    }
  }
}

}  // namespace emulator
