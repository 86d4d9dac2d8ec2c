// Stand-ins for the functions whose body is inline PTX, by the names the kernels give them.
// What they do is defined by the PTX ISA.
#pragma once

#include <language.h>

namespace emulator {

inline unsigned shared_address(const void* pointer, LINE) { return to_shared(pointer, line); }

}  // namespace emulator
