// fiber.h: stacks, and changing from one to another. Both for x86-64, and with the
// notes that the address sanitizer wants.
#pragma once
#include <stddef.h>

#include "block.h"

namespace emulator {

// Stacks keeps stacks for reuse and frees them at the end. Below each is a page that
// must not be touched.
class Stacks {
 public:
  Stacks() = default;
  Stacks(const Stacks &) = delete;
  Stacks &operator=(const Stacks &) = delete;
  ~Stacks();
  char *get(size_t i);  // the i-th
  static size_t bytes();

 private:
  std::vector<char *> all_;
};

// prepare makes a fiber begin with `entry` when it is entered, on its stack.
void prepare(Fiber &f, void (*entry)());

// enter runs a fiber until it leaves; begun is what each fiber calls first. A fiber
// that leaves for good says so.
void enter(Fiber &f);
void begun();
void leave(Fiber &f, bool for_good);

}  // namespace emulator
