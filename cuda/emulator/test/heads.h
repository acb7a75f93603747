// heads.h: heads of all kinds: fewer and more than a warp has, of columns that fill their
// lanes and that do not, of one tile and of several.
#pragma once
#include "test.h"

namespace test {

struct Shape {
  int heads, width;
  bool wide;

  int group() const {
    int g = 1;
    while (g < 32 && 4 * g < width) g *= 2;
    return g;
  }
  // grid is that of the kernels' heads.h.
  emulator::Dim grid(int rows, bool tiled, int each = 8) const {
    int warps = 32 / group(), tiles = tiled ? (width + 127) / 128 : 1;
    return {(unsigned)((rows + each - 1) / each), (unsigned)((heads + warps - 1) / warps * tiles), 1};
  }
};

constexpr Shape shapes[] = {{1, 1, true},  {35, 1, false}, {3, 3, false}, {8, 8, true},   {5, 8, false},   {2, 17, false},
                            {3, 64, true}, {4, 20, true},  {7, 2, true},  {1, 130, false}, {2, 260, true}, {1, 64, false}};

}  // namespace test
