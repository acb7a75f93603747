// entries.h: rows of a matrix that entries name, added up in the entries' order.
#pragma once
#include "rows.h"

namespace gk {

// addRows adds the rows of n entries, at most 32, which the lanes have one each, times
// their weights, four of them in flight. The rows are asked for before the weights are
// needed, as those may come from memory, too.
template <bool Wide, class T>
GK_DEVICE void addRows(float sum[4], const Columns<Wide> &c, int n, int mine, float weight, const T *x, int64_t ldx) {
  GK_ROLLED for (int j = 0; j < n; j += 4) {
    float v[4][4];
    GK_UNROLL for (int k = 0; k < 4; k++) {
      int row = shuffle(mine, (j + k) & 31);
      if (j + k < n) c.load(v[k], x + row * ldx);
    }
    GK_UNROLL for (int k = 0; k < 4; k++) {
      float w = shuffle(weight, (j + k) & 31);
      if (j + k >= n) continue;
      GK_UNROLL for (int i = 0; i < 4; i++) sum[i] = fused(w, v[k][i], sum[i]);
    }
  }
}

}  // namespace gk
