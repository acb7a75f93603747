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

// rowsOfBlock calls visit, which takes N rows at once that are next to each other of the
// warp's, so that as many are in flight, for all rows of the block that are the warp's.
template <class Visit>
GK_DEVICE void rowsOfBlock(int rows, int each, Visit &visit) {
  constexpr int inFlight = 4;
  int64_t first = (int64_t)blockX() * each, end = first + each < rows ? first + each : rows;
  int64_t row = first + warp();
  for (; row + (inFlight - 1) * warpsOfBlock < end; row += inFlight * warpsOfBlock) visit.template take<inFlight>(row);
  for (; row < end; row += warpsOfBlock) visit.template take<1>(row);
}

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
