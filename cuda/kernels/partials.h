// partials.h: sums of columns in an order that depends on the shape alone. A block
// adds up 128 columns of `each` rows, its warps by turns and then together, and writes
// a row of partial; add_partials (sums.cu) adds those up, one after the other.
//
// Launch: blocks of 256, grid (rows/each, cols/128), both rounded up; partial has that
// many rows of cols floats.
#pragma once
#include "rows.h"

namespace gk {

using Sums = float[warpsOfBlock][columnsOfWarp];

// together adds up what the warps have and writes the block's row.
template <bool Wide>
GK_DEVICE void together(float *partial, Sums &sums, const Columns<Wide> &c, const float mine[4]) {
  GK_UNROLL for (int i = 0; i < 4; i++) sums[warp()][Wide ? 4 * lane() + i : lane() + 32 * i] = mine[i];
  barrier();
  int column = (int)blockY() * columnsOfWarp + (int)thread();
  if (thread() < columnsOfWarp && column < c.cols) {
    float sum = 0.f;
    for (int w = 0; w < warpsOfBlock; w++) sum += sums[w][thread()];
    partial[(int64_t)blockX() * c.cols + column] = sum;
  }
}

}  // namespace gk
