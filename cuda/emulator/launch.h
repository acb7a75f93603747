// launch.h: running a kernel on fibers, in an order that a schedule chooses.
#pragma once
#include <string>

#include "block.h"

namespace emulator {

// A Schedule is which thread of a block goes on when several may, and when copies
// land. What depends on it is a race.
//   fwd, rev: all in turn, from the first or the last
//   greedy, greedyrev: one warp as far as it can, then the next
//   rand:N: shuffled each round
// Blocks run one after another: in rev and greedyrev from the last, in rand shuffled.
struct Schedule {
  enum Order { forward, reverse, greedy, greedy_reverse, random } order = forward;
  uint64_t seed = 1;
  bool eager_copies = false;
};

// parse reads "fwd", ..., "rand:7" and "late" or "eager"; null is the default. False:
// no such schedule.
bool parse(const char *order, const char *copies, Schedule &s);

// launch runs a grid and returns "" or what went wrong, with the kernel's name and
// where. Parameters are as cuLaunchKernel takes them.
std::string launch(const Kernel &k, Dim grid, Dim size, void **parameters, const Schedule &s);

}  // namespace emulator
