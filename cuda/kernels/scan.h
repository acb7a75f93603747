// scan.h: sums of what stands before each of a row of whole numbers. A tile is 1024
// of them, which a block of 256 has, four a thread. Whoever makes the numbers also
// leaves each tile's sum in partial (sumOfTile), and scan_apply (scan.cu) does the
// rest. How many numbers there are stands in memory, so that nobody has to wait for
// it; blocks beyond the last tile return.
#pragma once
#include "gk.h"

namespace gk {

constexpr int tile = 1024, ofThread = 4;

using Totals = int64_t[8];

GK_DEVICE int64_t shuffleWide(int64_t v, int from) {
  uint64_t low = shuffle((uint32_t)v, from), high = shuffle((uint32_t)((uint64_t)v >> 32), from);
  return (int64_t)(low | high << 32);
}

// before is the sum of v over the block's threads before this one, all that over all
// of them. totals must not be read any more by an earlier use.
GK_DEVICE int64_t before(int64_t v, Totals &totals, int64_t &all) {
  int64_t sum = v;
  for (int d = 1; d < 32; d *= 2) {
    int64_t other = shuffleWide(sum, ((int)lane() - d) & 31);
    if ((int)lane() >= d) sum += other;
  }
  if (lane() == 31) totals[warp()] = sum;
  barrier();
  int64_t earlier = 0;
  all = 0;
  for (unsigned w = 0; w < 8; w++) {
    if (w < warp()) earlier += totals[w];
    all += totals[w];
  }
  return earlier + sum - v;
}

// firstOfThread is the first of the thread's four.
GK_DEVICE int64_t firstOfThread() { return (int64_t)blockX() * tile + (int64_t)thread() * ofThread; }

// sumOfTile leaves the sum of all threads' numbers.
GK_DEVICE void sumOfTile(int64_t *partial, Totals &totals, int64_t mine) {
  int64_t all;
  before(mine, totals, all);
  if (thread() == 0) partial[blockX()] = all;
}

}  // namespace gk
