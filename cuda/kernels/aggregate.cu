// Aggregate: y[t] = e(the sum, or mean, over the entries of t of values * x[source]),
// optionally added to what y holds. One warp has `each` rows of targets, at most 31, and
// 128 columns: the grid is (rows/(8*each), cols/128), both rounded up. It reads 32
// entries at a time, a lane each, and has four rows of x in flight (entries.h). What y
// gets does not depend on `each`.
//
// Traffic: entries * cols elements of x, of which what the cache holds is not read
// again; rows * cols floats of y written (and read, with add); 4 bytes an entry, 8
// with values, for each 128 columns.
#include "entries.h"

using namespace gk;

namespace {

template <bool Wide>
struct Target {
  const Columns<Wide> &c;
  float *y;
  int64_t ldy;
  const int32_t *indices;
  const float *values;
  int mean, add;
  const Epilogue &e;

  GK_MEMBER int row(int64_t at) const { return indices[at]; }
  GK_MEMBER float weight(int64_t at, int) const { return values ? values[at] : 1.f; }
  GK_MEMBER void done(float sum[4], int64_t row, int entries) const {
    float before[4] = {};
    if (add) c.loadMutable(before, y + row * ldy);
    float share = mean && entries > 0 ? 1.f / (float)entries : 1.f;
    GK_UNROLL for (int i = 0; i < 4; i++) sum[i] = before[i] + sum[i] * share;
    c.finish(sum, e, row);
    c.store(y + row * ldy, sum);
  }
};

template <bool Wide, class T>
GK_DEVICE void aggregate(float *y, int64_t ldy, int rows, int cols, int each, const int64_t *indptr, const int32_t *indices,
                         const float *values, const T *x, int64_t ldx, int mean, int add, const Epilogue &e) {
  Columns<Wide> c(cols);
  Target<Wide> target = {c, y, ldy, indices, values, mean, add, e};
  sumLists<4>(c, rows, each, indptr, x, ldx, target);
}

}  // namespace

// x is float. values may be null, and stand like indices where indptr says.
KERNEL_BESIDE(aggregate_f32, 256, 4, float *y, int64_t ldy, int rows, int cols, int each, const int64_t *indptr, const int32_t *indices,
       const float *values, const float *x, int64_t ldx, int mean, int add, EPILOGUE) {
  if (cols % 4 == 0 && wide(y, ldy) && wide(x, ldx))
    aggregate<true>(y, ldy, rows, cols, each, indptr, indices, values, x, ldx, mean, add, EPILOGUE_GIVEN);
  else
    aggregate<false>(y, ldy, rows, cols, each, indptr, indices, values, x, ldx, mean, add, EPILOGUE_GIVEN);
}

// x is bf16.
KERNEL_BESIDE(aggregate_bf16, 256, 4, float *y, int64_t ldy, int rows, int cols, int each, const int64_t *indptr, const int32_t *indices,
       const float *values, const uint16_t *x, int64_t ldx, int mean, int add, EPILOGUE) {
  if (cols % 4 == 0 && wide(y, ldy) && wide(x, ldx))
    aggregate<true>(y, ldy, rows, cols, each, indptr, indices, values, x, ldx, mean, add, EPILOGUE_GIVEN);
  else
    aggregate<false>(y, ldy, rows, cols, each, indptr, indices, values, x, ldx, mean, add, EPILOGUE_GIVEN);
}
