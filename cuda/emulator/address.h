// address.h: a kernel that touches memory that is not there fails like any other.
#pragma once

namespace emulator {

// While Addresses lives, an access of this thread to an address that is not mapped ends
// the launch; one of another thread is whoever's it was before.
class Addresses {
 public:
  Addresses();
  ~Addresses();
  Addresses(const Addresses &) = delete;
  Addresses &operator=(const Addresses &) = delete;
};

}  // namespace emulator
