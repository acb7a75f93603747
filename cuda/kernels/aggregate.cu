// Aggregate: y[t] = e(the sum, or mean, over the entries of t of values * x[source]),
// optionally added to what y holds. One warp has a target's row and 128 columns
// (rows.h), reads 32 entries at a time, a lane each, and has four rows of x in flight.
//
// Traffic: entries * cols elements of x, of which what the cache holds is not read
// again; rows * cols floats of y written (and read, with add); 4 bytes an entry, 8
// with values, for each 128 columns.
#include "entries.h"

using namespace gk;

namespace {

// gathered adds up the rows of x at these entries, in an order that depends on
// nothing but them.
template <bool Wide, class T>
GK_DEVICE void gathered(float sum[4], const Columns<Wide> &c, int64_t from, int64_t to, const int32_t *indices, const float *values,
                        const T *x, int64_t ldx) {
  for (int64_t base = from; base < to; base += 32) {
    int n = (int)(to - base < 32 ? to - base : 32);
    int mine = (int)lane() < n ? indices[base + lane()] : 0;
    float weight = values && (int)lane() < n ? values[base + lane()] : 1.f;
    addRows(sum, c, n, mine, weight, x, ldx);
  }
}

template <bool Wide, class T>
GK_DEVICE void aggregate(float *y, int64_t ldy, int rows, int cols, const int64_t *indptr, const int32_t *indices, const float *values,
                         const T *x, int64_t ldx, int mean, int add, const Epilogue &e) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Columns<Wide> c(cols);
  int64_t from = indptr[row], to = indptr[row + 1];
  float sum[4] = {}, before[4] = {};
  if (add) c.loadMutable(before, y + row * ldy);
  gathered(sum, c, from, to, indices, values, x, ldx);
  float share = mean && to > from ? 1.f / (float)(to - from) : 1.f;
  GK_UNROLL for (int i = 0; i < 4; i++) sum[i] = before[i] + sum[i] * share;
  c.finish(sum, e, row);
  c.store(y + row * ldy, sum);
}

}  // namespace

// x is float. values may be null, and stand like indices where indptr says.
KERNEL(aggregate_f32, 256, float *y, int64_t ldy, int rows, int cols, const int64_t *indptr, const int32_t *indices, const float *values,
       const float *x, int64_t ldx, int mean, int add, EPILOGUE) {
  if (wide(y, ldy) && wide(x, ldx))
    aggregate<true>(y, ldy, rows, cols, indptr, indices, values, x, ldx, mean, add, EPILOGUE_GIVEN);
  else
    aggregate<false>(y, ldy, rows, cols, indptr, indices, values, x, ldx, mean, add, EPILOGUE_GIVEN);
}

// x is bf16.
KERNEL(aggregate_bf16, 256, float *y, int64_t ldy, int rows, int cols, const int64_t *indptr, const int32_t *indices, const float *values,
       const uint16_t *x, int64_t ldx, int mean, int add, EPILOGUE) {
  if (wide(y, ldy) && wide(x, ldx))
    aggregate<true>(y, ldy, rows, cols, indptr, indices, values, x, ldx, mean, add, EPILOGUE_GIVEN);
  else
    aggregate<false>(y, ldy, rows, cols, indptr, indices, values, x, ldx, mean, add, EPILOGUE_GIVEN);
}
