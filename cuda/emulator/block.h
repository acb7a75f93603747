// block.h: a running block, as the primitives in host.h see it. One fiber is one
// CUDA thread; they take turns on one thread of the machine, so that nothing here is
// locked. What a schedule may choose is in schedule.h.
#pragma once
#include <stdint.h>

#include <map>
#include <string>
#include <vector>

namespace emulator {

struct Dim {
  unsigned x, y, z;
};

// A Copy is one cp.async: `bytes` of its size, the rest zeros.
struct Copy {
  void *to;
  const void *from;
  int bytes, size;
};

// What a fiber waits for: that the counter of its warp or block has moved on.
enum class Waits { nothing, warp, block, ended };

struct Fiber {
  void *stack_pointer = nullptr;
  void *asan_stack = nullptr;  // what the address sanitizer keeps of it
  char *stack = nullptr;
  unsigned thread = 0;
  Waits waits = Waits::nothing;
  uint64_t until = 0;               // the counter's value that ends the wait
  std::vector<std::vector<Copy>> groups;  // committed, oldest first
  std::vector<Copy> open;
};

// A Meeting is where the lanes of a warp exchange something, or wait for each other.
// What is given lies twice, by turns: a lane that is quick gives for the next meeting
// while another still reads of this one.
struct Meeting {
  static constexpr int room = 32;
  unsigned arrived = 0, lanes = 0, ended = 0;
  uint64_t count = 0;
  const char *operation = nullptr;
  unsigned line = 0;
  alignas(16) unsigned char given[2][32][room];
};

// Shared is one array of the block's shared memory.
struct Shared {
  char *at;
  size_t bytes;
};

struct Block {
  Dim index, size, grid;
  unsigned alive = 0, arrived = 0;
  uint64_t barriers = 0;
  unsigned barrier_line = 0;
  std::vector<Fiber> fibers;
  std::vector<Meeting> warps;
  std::map<const void *, Shared> shared;  // by where in the program it is declared
  size_t shared_bytes = 0;
  bool eager_copies = false;
  bool moved = false;  // whether anything happened since the scheduler looked
};

// now are the block and fiber that run.
extern Block *block;
extern Fiber *fiber;

// wait gives the turn away until the fiber may go on. fail ends the launch.
void wait();
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// barrier, meet, shared_memory and land are the primitives' slow halves.
void barrier(unsigned line);
unsigned char *meet(const char *operation, unsigned line, const void *mine, size_t bytes);
void *shared_memory(const void *site, size_t bytes);
void land(const Copy &c);

// A Kernel is one that was compiled for the host.
struct Kernel {
  const char *name;
  unsigned threads;  // a block has at most
  void (*call)(void **);
  std::vector<int> sizes;  // of its parameters, in bytes
};
std::map<std::string, Kernel> &kernels();

}  // namespace emulator
