// scans.h: the launch of what is summed up (kernels/scan.h).
#pragma once
#include "test.h"

namespace test {

// tiles is the grid for n numbers and the one behind them.
inline emulator::Dim tiles(int64_t n) { return {(unsigned)(n / 1024 + 1), 1, 1}; }
// threads is that for n threads.
inline emulator::Dim threads(int64_t n) { return {(unsigned)((n + 255) / 256), 1, 1}; }
inline emulator::Dim warps(int64_t n) { return {(unsigned)((n + 7) / 8), 1, 1}; }

constexpr int64_t unlimited = INT64_MAX;

// same compares whole numbers.
template <class T>
void same(const char *what, Buffer<T> &got, const std::vector<T> &want) {
  for (size_t i = 0; i < want.size(); i++)
    if (got[i] != want[i]) return wrong("%s: number %zu of %zu is %lld, want %lld", what, i, want.size(), (long long)got[i], (long long)want[i]);
}

}  // namespace test
