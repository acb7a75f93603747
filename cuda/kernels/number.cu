// Number: sources get numbers of their batch in place of their ids: those that the
// batch has keep theirs, new ones follow in the order in which they first occur. A
// table with open addressing has, for each vertex, the least place at which it occurs:
// the same whatever runs first, though where in the table it lies is not.
//
// A place of the table is two words: the vertex, and its number, or the number of
// targets plus the least entry that it occurs in. Words begin as 0x7fffffff, which is
// no vertex. mask is the number of places, a power of two and at least twice that of
// vertices, less 1.
//
// Launch: blocks of 256, a thread an entry or root, for as many as there may be;
// number_firsts as scan.h. Traffic: some 64 bytes an entry, half of it scattered.
#include "scan.h"

using namespace gk;

namespace {

constexpr uint32_t nobody = 0x7fffffffu;

// placeOf is where the table has v, which is put there if it is new.
GK_DEVICE uint32_t placeOf(uint32_t *table, uint32_t mask, uint32_t v) {
  uint32_t at = (uint32_t)((uint64_t)v * 0x9e3779b97f4a7c15ull >> 32) & mask;
  for (;; at = (at + 1) & mask) {
    uint32_t *word = table + 2 * (uint64_t)at;
    uint32_t has = *word;
    if (has == nobody) has = swapAtomic(word, nobody, v);
    if (has == nobody || has == v) return at;
  }
}

// lower makes a number the least.
GK_DEVICE void lower(uint32_t *table, uint32_t at, int number) {
  int *word = (int *)table + 2 * (uint64_t)at + 1;
  if (*word > number) minAtomic(word, number);
}

}  // namespace

// number_roots begins a batch with its roots: vertices and the table.
KERNEL(number_roots, 256, uint32_t *vertices, uint32_t *table, int mask, const uint32_t *roots, const int64_t *count) {
  int64_t i = (int64_t)blockX() * threads() + thread();
  if (i >= *count) return;
  vertices[i] = roots[i];
  lower(table, placeOf(table, (uint32_t)mask, roots[i]), (int)i);
}

// number_check lowers *again to the first root that stood there before.
KERNEL(number_check, 256, int *again, uint32_t *table, int mask, const uint32_t *roots, const int64_t *count) {
  int64_t i = (int64_t)blockX() * threads() + thread();
  if (i >= *count) return;
  uint32_t at = placeOf(table, (uint32_t)mask, roots[i]);
  if (table[2 * (uint64_t)at + 1] != (uint32_t)i) minAtomic(again, (int)i);
}

// number_places replaces sources by their places in the table, which get the least
// entry of each.
KERNEL(number_places, 256, int32_t *sources, uint32_t *table, int mask, const int64_t *targets, const int64_t *entries) {
  int64_t e = (int64_t)blockX() * threads() + thread();
  if (e >= *entries) return;
  uint32_t at = placeOf(table, (uint32_t)mask, (uint32_t)sources[e]);
  lower(table, at, (int)(*targets + e));
  sources[e] = (int32_t)at;
}

// number_firsts sets firsts[e] to 1 where a vertex that is new occurs first, else 0,
// and partial to the tiles' sums.
KERNEL(number_firsts, 256, int64_t *firsts, int64_t *partial, const uint32_t *table, const int32_t *places, const int64_t *targets,
       const int64_t *entries) {
  SHARED(Totals, totals);
  int64_t end = *entries, first = firstOfThread(), mine = 0;
  if ((int64_t)blockX() * tile > end) return;
  for (int i = 0; i < ofThread && first + i < end; i++) {
    bool is = table[2 * (uint64_t)(uint32_t)places[first + i] + 1] == (uint32_t)(*targets + first + i);
    firsts[first + i] = is;
    mine += is;
  }
  sumOfTile(partial, totals, mine);
}

// number_new appends the new vertices to vertices, and gives them their numbers; ranks
// is firsts summed up.
KERNEL(number_new, 256, uint32_t *vertices, uint32_t *table, const int64_t *ranks, const int32_t *places, const int64_t *targets,
       const int64_t *entries) {
  int64_t e = (int64_t)blockX() * threads() + thread();
  if (e >= *entries || ranks[e] == ranks[e + 1]) return;
  uint32_t *place = table + 2 * (uint64_t)(uint32_t)places[e];
  int64_t number = *targets + ranks[e];
  vertices[number] = place[0];
  place[1] = (uint32_t)number;
}

// number_sources replaces places by numbers.
KERNEL(number_sources, 256, int32_t *sources, const uint32_t *table, const int64_t *entries) {
  int64_t e = (int64_t)blockX() * threads() + thread();
  if (e < *entries) sources[e] = (int32_t)table[2 * (uint64_t)(uint32_t)sources[e] + 1];
}
