// What matrices hold, by the kernel's own define: device.h is compiled before it is known.

namespace emulator {

#ifdef BF16
const bool kBf16 = true;
#else
const bool kBf16 = false;
#endif

}  // namespace emulator
