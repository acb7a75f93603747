// entries.h: rows of a matrix that entries name, added up in the entries' order.
#pragma once
#include "rows.h"

namespace gk {

// addRows adds the rows of n entries, at most 32, which the lanes have one each, times
// their weights, four of them in flight.
template <bool Wide, class T>
GK_DEVICE void addRows(float sum[4], const Columns<Wide> &c, int n, int mine, float weight, const T *x, int64_t ldx) {
  int j = 0;
  for (; j + 4 <= n; j += 4) {
    float v[4][4], w[4];
    GK_UNROLL for (int k = 0; k < 4; k++) {
      w[k] = shuffle(weight, j + k);
      c.load(v[k], x + shuffle(mine, j + k) * ldx);
    }
    GK_UNROLL for (int k = 0; k < 4; k++)
      GK_UNROLL for (int i = 0; i < 4; i++) sum[i] = fused(w[k], v[k][i], sum[i]);
  }
  for (; j < n; j++) {
    float v[4], w = shuffle(weight, j);
    c.load(v, x + shuffle(mine, j) * ldx);
    GK_UNROLL for (int i = 0; i < 4; i++) sum[i] = fused(w, v[i], sum[i]);
  }
}

}  // namespace gk
