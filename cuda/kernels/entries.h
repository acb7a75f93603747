// entries.h: rows of a matrix that entries name, added up in the entries' order.
#pragma once
#include "rows.h"

namespace gk {

// addRows adds the rows of n entries, at most 32, which the lanes have one each, times
// their weights, N of them in flight. The rows are asked for before the weights are
// needed, as those may come from memory, too.
template <int N, bool Wide, class T>
GK_DEVICE void addRows(float sum[4], const Columns<Wide> &c, int n, int mine, float weight, const T *x, int64_t ldx) {
  GK_ROLLED for (int j = 0; j < n; j += N) {
    float v[N][4];
    GK_UNROLL for (int k = 0; k < N; k++) {
      int row = shuffle(mine, (j + k) & 31);
      if (j + k < n) c.load(v[k], x + row * ldx);
    }
    GK_UNROLL for (int k = 0; k < N; k++) {
      float w = shuffle(weight, (j + k) & 31);
      if (j + k >= n) continue;
      GK_UNROLL for (int i = 0; i < 4; i++) sum[i] = fused(w, v[k][i], sum[i]);
    }
  }
}

// sumLists makes the sums of the warp's lists of entries: `each` of them, at most 31,
// that are next to each other, of `lists` in all. List l has the entries bounds[l] to
// bounds[l+1]. The warp takes its lists as one, with N rows of x in flight, also of
// the lists that follow, since lists may be short. A Visit says which row and weight
// belong to an entry, and what becomes of a list's sum.
template <int N, bool Wide, class T, class Visit>
GK_DEVICE void sumLists(const Columns<Wide> &c, int lists, int each, const int64_t *bounds, const T *x, int64_t ldx, const Visit &visit) {
  int64_t first = rowOfWarp() * each;
  if (first >= lists) return;
  int count = (int)(lists - first < each ? lists - first : each), own = (int)lane() < count ? (int)lane() : count;
  int64_t begin = bounds[first];
  int bound = (int)(bounds[first + own] - begin), all = shuffle(bound, count), at = 0;
  int mine = 0;  // the row of entry at/32*32 + lane, and its weight
  float weight = 0.f, v[N][4];
  GK_ROLLED for (int list = 0; list < count; list++) {
    int end = shuffle(bound, list + 1);
    float sum[4] = {};
    while (at < end) {
      if (at % 32 == 0) {
        bool has = at + (int)lane() < all;
        int64_t entry = begin + at + (int)lane();
        mine = has ? visit.row(entry) : 0;
        GK_UNROLL for (int k = 0; k < N; k++) {
          int row = shuffle(mine, k);
          if (at + k < all) c.load(v[k], x + row * ldx);
        }
        weight = has ? visit.weight(entry, mine) : 0.f;
      }
      int stop = (at | 31) < end ? (at | 31) + 1 : end;
      while (at < stop) {
        GK_UNROLL for (int k = 0; k < N; k++) {
          if (at % N != k || at == stop) continue;
          float w = shuffle(weight, at & 31);
          GK_UNROLL for (int i = 0; i < 4; i++) sum[i] = fused(w, v[k][i], sum[i]);
          if ((at & 31) < 32 - N) {
            int row = shuffle(mine, (at & 31) + N);
            if (at + N < all) c.load(v[k], x + row * ldx);
          }
          at++;
        }
      }
    }
    visit.done(sum, first + list, end - shuffle(bound, list));
  }
}

}  // namespace gk
