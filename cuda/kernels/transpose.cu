// Transpose: a block's entries by columns, those of a column in the order in which
// they stand in the block. They are sorted by 8 bits of their column at a time, from
// the lowest, each time without changing the order of equals: nothing depends on what
// runs first, nor is a column with very many entries slower.
//
// Launch: blocks of 256; transpose_counts and transpose_sort one for each 2048 entries
// that there may be, between them scan_sums and scan_apply over counts; the others a
// thread an entry or column. Traffic: some 30 bytes an entry for each 8 bits, of which
// 4 are read and 4 written scattered; then two binary searches.
#include "scan.h"

using namespace gk;

namespace {

constexpr int digits = 256, rounds = 8, ofWarp = 32 * rounds, ofBlock = 8 * ofWarp;

using Counters = int[8][digits];

// Entries are the warp's 256 of them in rounds of 32: a lane's digits, and how many of
// the warp's before it have the same.
struct Entries {
  int entry[rounds], digit[rounds], rank[rounds];

  // count also leaves in the warp's counters how many have each digit, and returns
  // once all warps have.
  GK_MEMBER void count(Counters &counters, const int32_t *order, const int32_t *columns, int64_t entries, int shift) {
    int *mine = counters[warp()];
    for (int d = (int)lane(); d < digits; d += 32) mine[d] = 0;
    warpBarrier();
    GK_UNROLL for (int r = 0; r < rounds; r++) {
      int64_t i = at(r);
      bool has = i < entries;
      entry[r] = has ? order ? order[i] : (int)i : -1;
      digit[r] = has ? columns[entry[r]] >> shift & (digits - 1) : 0;
      uint32_t same = votes(has);
      GK_UNROLL for (int bit = 0; bit < 8; bit++) {
        bool one = digit[r] >> bit & 1;
        uint32_t with = votes(one);
        same &= one ? with : ~with;
      }
      uint32_t lower = same & ((1u << lane()) - 1);
      int sofar = mine[digit[r]];
      rank[r] = sofar + __builtin_popcount(lower);
      warpBarrier();  // all have read
      if (has && lower == 0) mine[digit[r]] = sofar + __builtin_popcount(same);
      warpBarrier();
    }
    barrier();
  }
  GK_MEMBER int64_t at(int r) const { return (int64_t)blockX() * ofBlock + (int64_t)warp() * ofWarp + r * 32 + lane(); }
};

GK_DEVICE int64_t blocksOf(int64_t entries) { return (entries + ofBlock - 1) / ofBlock; }

}  // namespace

// transpose_counts sets counts to how many entries of each block have each digit, the
// blocks of a digit next to each other, and *n to how many counts there are. order is
// how the entries are sorted so far, null: as they stand.
KERNEL(transpose_counts, 256, int64_t *counts, int64_t *n, const int32_t *order, const int32_t *columns, const int64_t *entries, int shift) {
  SHARED(Counters, counters);
  int64_t blocks = blocksOf(*entries);
  if (blockX() == 0 && thread() == 0) *n = blocks * digits;
  if (blockX() >= blocks) return;
  Entries e;
  e.count(counters, order, columns, *entries, shift);
  int all = 0;
  for (int w = 0; w < 8; w++) all += counters[w][thread()];
  counts[thread() * blocks + blockX()] = all;
}

// transpose_sort writes the entries to where they come next; counts are summed up.
KERNEL(transpose_sort, 256, int32_t *to, const int64_t *counts, const int32_t *order, const int32_t *columns, const int64_t *entries,
       int shift) {
  SHARED(Counters, counters);
  int64_t blocks = blocksOf(*entries);
  if (blockX() >= blocks) return;
  Entries e;
  e.count(counters, order, columns, *entries, shift);
  int next = (int)counts[thread() * blocks + blockX()];
  for (int w = 0; w < 8; w++) {
    int n = counters[w][thread()];
    counters[w][thread()] = next;
    next += n;
  }
  barrier();
  GK_UNROLL for (int r = 0; r < rounds; r++)
    if (e.entry[r] >= 0) to[counters[warp()][e.digit[r]] + e.rank[r]] = e.entry[r];
}

// transpose_rows sets rows[i] to the row of entry edges[i].
KERNEL(transpose_rows, 256, int32_t *rows, const int32_t *edges, const int64_t *indptr, const int64_t *targets, const int64_t *entries) {
  int64_t i = (int64_t)blockX() * threads() + thread();
  if (i >= *entries) return;
  int64_t low = 0, high = *targets - 1, e = edges[i];
  while (low < high) {  // the last row that does not begin behind e
    int64_t middle = (low + high + 1) / 2;
    if (indptr[middle] <= e) low = middle;
    else high = middle - 1;
  }
  rows[i] = (int32_t)low;
}

// transpose_columns sets bounds[c] to where the entries of column c begin, and one
// more to where those of the last end.
KERNEL(transpose_columns, 256, int64_t *bounds, const int32_t *edges, const int32_t *columns, const int64_t *sources, const int64_t *entries) {
  int64_t c = (int64_t)blockX() * threads() + thread();
  if (c > *sources) return;
  int64_t low = 0, high = *entries;
  while (low < high) {  // the first entry whose column is not below c
    int64_t middle = (low + high) / 2;
    if (columns[edges[middle]] < c) low = middle + 1;
    else high = middle;
  }
  bounds[c] = low;
}
