// AggregateMax: y[t] = the largest over the entries of t of x[source], column by
// column, and which source's row that came from: the first entry of equal ones, -1
// where there are no entries, whose row of y is 0. And its gradient, by columns.
//
// Launch: rows.h. Traffic: as aggregate.cu without values, and which, 4 bytes an
// element.
#include "rows.h"

using namespace gk;

namespace {

// largest takes the next N entries, in their order and with all of their rows in flight.
template <int N>
GK_DEVICE void largest(float best[4], int from[4], const Columns<false> &c, const int32_t *entries, const float *x, int64_t ldx) {
  int source[N];
  float v[N][4];
  GK_UNROLL for (int j = 0; j < N; j++) source[j] = entries[j];
  GK_UNROLL for (int j = 0; j < N; j++) c.load(v[j], x + source[j] * ldx);
  GK_UNROLL for (int j = 0; j < N; j++)
    GK_UNROLL for (int i = 0; i < 4; i++) {
      if (from[i] < 0 || v[j][i] > best[i]) best[i] = v[j][i], from[i] = source[j];
    }
}

}  // namespace

KERNEL(aggregate_max, 256, float *y, int64_t ldy, int32_t *which, int64_t ldw, int rows, int cols, const int64_t *indptr,
       const int32_t *indices, const float *x, int64_t ldx) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Columns<false> c(cols);
  float best[4] = {};
  int from[4] = {-1, -1, -1, -1};
  int64_t at = indptr[row], end = indptr[row + 1];
  for (; at + 4 <= end; at += 4) largest<4>(best, from, c, indices + at, x, ldx);
  for (; at < end; at++) largest<1>(best, from, c, indices + at, x, ldx);
  c.store(y + row * ldy, best);
  GK_UNROLL for (int i = 0; i < 4; i++)
    if (c.has(i)) which[row * ldw + c.at(i)] = from[i];
}

// aggregate_max_back is dx[s] = the sum of dy[t] where which is s, over the targets of
// s; a target that has s twice counts once, and stands twice in a row.
KERNEL(aggregate_max_back, 256, float *dx, int64_t ldx, int rows, int cols, const int64_t *columns, const int32_t *targets,
       const float *dy, int64_t ldy, const int32_t *which, int64_t ldw, int add) {
  int64_t source = rowOfWarp();
  if (source >= rows) return;
  Columns<false> c(cols);
  float sum[4] = {};
  if (add) c.loadMutable(sum, dx + source * ldx);
  int last = -1;
  for (int64_t at = columns[source]; at < columns[source + 1]; at++) {
    int64_t target = targets[at];
    if (target == last) continue;
    last = (int)target;
    GK_UNROLL for (int i = 0; i < 4; i++)
      if (c.has(i) && which[target * ldw + c.at(i)] == (int)source) sum[i] += dy[target * ldy + c.at(i)];
  }
  c.store(dx + source * ldx, sum);
}
