// keyed.h: numbers that look random from what they are for, the same bits as
// engine/keyed on the processor. testdata/keyed.txt, which Go writes, holds both to
// that.
#pragma once
#include "gk.h"

namespace gk {

// childKey is Key.With.
GK_DEVICE uint64_t childKey(uint64_t key, uint64_t x) {
  uint64_t z = key + (x + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

// nextDraw is Sequence.Next: a sequence begins as its key.
GK_DEVICE uint64_t nextDraw(uint64_t &sequence) {
  sequence += 0xa0761d6478bd642full;
  uint64_t b = sequence ^ 0xe7037ed1a0b428dbull;
  return multiplyHigh(sequence, b) ^ sequence * b;
}

// drawBelow is Sequence.Below.
GK_DEVICE uint64_t drawBelow(uint64_t &sequence, uint64_t n) { return multiplyHigh(nextDraw(sequence), n); }

// columnBits is Key.Column.
GK_DEVICE uint32_t columnBits(uint64_t key, uint32_t column) {
  uint32_t h = (uint32_t)key + column * 0x9e3779b9u;
  h ^= (uint32_t)(key >> 32);
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

}  // namespace gk
