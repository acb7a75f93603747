// Scan: each of n numbers becomes the sum of those before it, and one more behind the
// last the sum of all. Whole numbers: the same whatever runs first.
//
// Launch: blocks of 256, one for each 1024 numbers and the one behind them; more
// return. Traffic: 24 bytes a number, and each block reads the tiles' sums before it.
#include "scan.h"

using namespace gk;

// scan_sums makes the tiles' sums where the numbers' maker did not.
KERNEL(scan_sums, 256, int64_t *partial, const int64_t *x, const int64_t *n) {
  SHARED(Totals, totals);
  int64_t end = *n, first = firstOfThread(), mine = 0;
  if ((int64_t)blockX() * tile > end) return;
  for (int i = 0; i < ofThread; i++)
    if (first + i < end) mine += x[first + i];
  sumOfTile(partial, totals, mine);
}

// scan_apply makes the sums, in place. total, if not null, gets two numbers: the sum
// of all, and what is held of it, none if that is above limit; the second counts from
// *base, if there is one.
KERNEL(scan_apply, 256, int64_t *x, const int64_t *partial, const int64_t *n, const int64_t *base, int64_t limit, int64_t *total) {
  SHARED(Totals, ofTiles);
  SHARED(Totals, ofThreads);
  int64_t end = *n, first = firstOfThread(), earlier = 0, mine = 0, start, all;
  if ((int64_t)blockX() * tile > end) return;
  for (unsigned b = thread(); b < blockX(); b += threads()) earlier += partial[b];
  before(earlier, ofTiles, start);
  int64_t own[ofThread];
  GK_UNROLL for (int i = 0; i < ofThread; i++) {
    own[i] = first + i < end ? x[first + i] : 0;
    mine += own[i];
  }
  int64_t sum = start + before(mine, ofThreads, all);
  GK_UNROLL for (int i = 0; i < ofThread; i++) {
    if (first + i <= end) x[first + i] = sum;
    if (first + i == end && total) {
      total[0] = sum;
      total[1] = (sum > limit ? 0 : sum) + (base ? *base : 0);
    }
    sum += own[i];
  }
}
