// Shared memory and its addresses, global arrays and the zones around them.

#include "runtime.h"

#include <sys/mman.h>

#include <algorithm>

extern unsigned char __start_kernel_shared[] __attribute__((weak, visibility("hidden")));
extern unsigned char __stop_kernel_shared[] __attribute__((weak, visibility("hidden")));

namespace emulator {

constexpr size_t kMaxShared = 227 << 10;
constexpr size_t kMaxStaticShared = 48 << 10;
constexpr unsigned kStaticAt = 1024;  // where shared addresses start on the hardware

unsigned char* dynamic_base;

static size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

bool is_poison(const void* memory, size_t bytes) {
  const auto* byte = static_cast<const unsigned char*>(memory);
  return std::all_of(byte, byte + bytes, [](unsigned char value) { return value == kPoison; });
}

// ---- Shared memory

size_t static_shared_bytes() { return __stop_kernel_shared - __start_kernel_shared; }

static uintptr_t static_window() {
  return reinterpret_cast<uintptr_t>(__start_kernel_shared) & ~uintptr_t{1023};
}

static unsigned dynamic_at() {
  const auto end = reinterpret_cast<uintptr_t>(__stop_kernel_shared);
  return kStaticAt + static_cast<unsigned>(rounded(end - static_window(), 1024));
}

unsigned to_shared(const void* pointer, int line) {
  const auto* byte = static_cast<const unsigned char*>(pointer);
  if (byte >= __start_kernel_shared && byte <= __stop_kernel_shared && __start_kernel_shared) {
    return kStaticAt + static_cast<unsigned>(reinterpret_cast<uintptr_t>(byte) - static_window());
  }
  if (byte >= dynamic_base && byte <= dynamic_base + machine.launch->shared_bytes) {
    return dynamic_at() + static_cast<unsigned>(byte - machine.dynamic_map);
  }
  fail(line, "a shared address of %p, which is not in shared memory", pointer);
}

unsigned char* from_shared(unsigned address, size_t bytes, const char* name, int line) {
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

void poison_shared() {
  if (__start_kernel_shared) memset(__start_kernel_shared, kPoison, static_shared_bytes());
  memset(machine.dynamic_map, kPoison, machine.dynamic_room);
}

void check_dynamic_end() {
  const unsigned char* end = dynamic_base + machine.launch->shared_bytes;
  for (const unsigned char* byte = end; byte < machine.dynamic_map + machine.dynamic_room; ++byte) {
    if (*byte != kPoison) {
      fail(0, "block (%u, %u, %u): a write %td bytes past the end of dynamic shared memory",
           blockIdx.x, blockIdx.y, blockIdx.z, byte - end);
    }
  }
}

// As aligned as its declaration asks for and no more, so that who needs more must say so.
void make_dynamic_shared(size_t alignment) {
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

// ---- Global arrays

unsigned char* reserve(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) fail(0, "no address space for %zu bytes", bytes);
  return static_cast<unsigned char*>(at);
}

// Flush to the zone behind it, but for the 16 bytes that vector loads need.
Region place(const Array& array) {
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

void check_around(const Region& region) {
  for (const unsigned char* byte = region.first; byte < region.last; ++byte) {
    if (byte == region.data) byte = region.end;
    if (byte < region.last && *byte != kPoison) {
      fail(0, "argument %d: a write %td bytes %s", region.array.argument,
           byte < region.data ? region.data - byte : byte - region.end,
           byte < region.data ? "before its start" : "past its end");
    }
  }
}

}  // namespace emulator
