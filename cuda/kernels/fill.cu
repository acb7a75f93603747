// Fill: memory set to a word of four bytes, over and over.
//
// Launch: blocks of 256, a thread 16 bytes. Traffic: what is written.
#include "gk.h"

using namespace gk;

// fill sets so many bytes from `at` on; both are even, and the first byte is the word's
// lowest.
KERNEL(fill, 256, void *at, int64_t bytes, uint32_t word) {
  int64_t from = ((int64_t)blockX() * threads() + thread()) * 16;
  if (from + 16 <= bytes && aligned(at, 0, 16)) {
    float f = asFloat(word);
    store4((float *)((char *)at + from), Float4{f, f, f, f});
    return;
  }
  for (int i = 0; i < 8 && from + 2 * i < bytes; i++) ((uint16_t *)((char *)at + from))[i] = (uint16_t)(i % 2 ? word >> 16 : word);
}
