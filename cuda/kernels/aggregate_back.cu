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
struct Source {
  const Columns<Wide> &c;
  float *dx;
  int64_t ldx;
  const int32_t *targets, *edges;
  const int64_t *indptr;
  const float *values;
  int mean, add;

  GK_MEMBER int row(int64_t at) const { return targets[at]; }
  GK_MEMBER float weight(int64_t at, int target) const {
    float weight = values ? values[edges[at]] : 1.f;
    return mean ? weight / (float)(indptr[target + 1] - indptr[target]) : weight;
  }
  GK_MEMBER void done(float sum[4], int64_t source, int) const {
    if (add) {
      float before[4];
      c.loadMutable(before, dx + source * ldx);
      GK_UNROLL for (int i = 0; i < 4; i++) sum[i] += before[i];
    }
    c.store(dx + source * ldx, sum);
  }
};

template <bool Wide>
GK_DEVICE void aggregateBack(float *dx, int64_t ldx, int rows, int cols, int each, const int64_t *columns, const int32_t *targets,
                             const int32_t *edges, const int64_t *indptr, const float *values, const float *dy, int64_t ldy, int mean,
                             int add) {
  Columns<Wide> c(cols);
  Source<Wide> source = {c, dx, ldx, targets, edges, indptr, values, mean, add};
  sumLists<4>(c, rows, each, columns, dy, ldy, source);
}

}  // namespace

// rows is how many sources there are; columns, targets and edges are the Transpose.
// values may be null, and stand where edges say; indptr is the CSR's, for a mean.
KERNEL(aggregate_back, 256, float *dx, int64_t ldx, int rows, int cols, int each, const int64_t *columns,
       const int32_t *targets, const int32_t *edges, const int64_t *indptr, const float *values, const float *dy, int64_t ldy, int mean, int add) {
  if (cols % 4 == 0 && wide(dx, ldx) && wide(dy, ldy))
    aggregateBack<true>(dx, ldx, rows, cols, each, columns, targets, edges, indptr, values, dy, ldy, mean, add);
  else
    aggregateBack<false>(dx, ldx, rows, cols, each, columns, targets, edges, indptr, values, dy, ldy, mean, add);
}
