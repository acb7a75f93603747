// AggregateBack: the gradient with respect to the sources, dx[s] = the sum over the
// entries of s of the value * dy[target] (divided by the target's entries, for a
// mean), optionally added to what dx holds. It goes by columns (tensor.Transpose), so
// that each row of dx is written once, by one warp, in the order of the targets:
// no atomics, the same bits always.
//
// Launch and traffic: as aggregate.cu, and 4 bytes more an entry for where the entry
// stands, which values need, 16 for the target's bounds, which a mean needs.
#include "entries.h"

using namespace gk;

namespace {

template <bool Wide>
GK_DEVICE void aggregateBack(float *dx, int64_t ldx, int rows, int cols, const int64_t *columns, const int32_t *targets,
                             const int32_t *edges, const int64_t *indptr, const float *values, const float *dy, int64_t ldy, int mean,
                             int add) {
  int64_t source = rowOfWarp();
  if (source >= rows) return;
  Columns<Wide> c(cols);
  int64_t from = columns[source], to = columns[source + 1];
  float sum[4] = {};
  if (add) c.loadMutable(sum, dx + source * ldx);
  for (int64_t base = from; base < to; base += 32) {
    int n = (int)(to - base < 32 ? to - base : 32);
    int mine = 0;
    float weight = 0.f;
    if ((int)lane() < n) {
      mine = targets[base + lane()];
      weight = values ? values[edges[base + lane()]] : 1.f;
      if (mean) weight /= (float)(indptr[mine + 1] - indptr[mine]);
    }
    addRows(sum, c, n, mine, weight, dy, ldy);
  }
  c.store(dx + source * ldx, sum);
}

}  // namespace

// rows is how many sources there are; columns, targets and edges are the Transpose.
// values may be null, and stand where edges say; indptr is the CSR's, for a mean.
KERNEL(aggregate_back, 256, float *dx, int64_t ldx, int rows, int cols, const int64_t *columns, const int32_t *targets,
       const int32_t *edges, const int64_t *indptr, const float *values, const float *dy, int64_t ldy, int mean, int add) {
  if (wide(dx, ldx) && wide(dy, ldy))
    aggregateBack<true>(dx, ldx, rows, cols, columns, targets, edges, indptr, values, dy, ldy, mean, add);
  else
    aggregateBack<false>(dx, ldx, rows, cols, columns, targets, edges, indptr, values, dy, ldy, mean, add);
}
