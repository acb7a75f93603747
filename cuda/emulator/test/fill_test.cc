#include "test.h"

using namespace test;

// Sizes around 16 bytes and a block, at places that are multiples of 16, 4 and 2.
TEST(fill) {
  for (size_t n : {1, 7, 8, 9, 24, 2047, 2048, 2051})
    for (size_t shift : {0, 2, 3, 8}) {
      Buffer<uint16_t> x(n, shift);
      const uint32_t word = 0x3f80a5c1;
      run("fill", {(unsigned)(n + 2047) / 2048, 1, 1}, x.data(), (int64_t)(2 * n), word);
      for (size_t i = 0; i < n; i++) near("fill", (int)n, (int)i, x[i], i % 2 ? 0x3f80 : 0xa5c1, 0);
    }
}
