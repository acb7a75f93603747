// Elements: what sees each element by itself. Launch: rows.h. Traffic: every operand
// once. Where a result may lie over an operand, a lane has read its elements of that
// before it writes them.
#include "rows.h"

using namespace gk;

namespace {

template <bool Wide>
GK_DEVICE void apply(float *y, int64_t ldy, const float *x, int64_t ldx, int rows, int cols, const Epilogue &e) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Columns<Wide> c(cols);
  float v[4];
  c.loadMutable(v, x + row * ldx);
  c.finish(v, e, row);
  c.store(y + row * ldy, v);
}

// loadAny reads a row of a type known while running, storeAny writes one.
template <bool Wide>
GK_DEVICE void loadAny(const Columns<Wide> &c, float v[4], int type, const void *base, int64_t at) {
  if (type == BF16) c.loadMutable(v, (const uint16_t *)base + at);
  else c.loadMutable(v, (const float *)base + at);
}
template <bool Wide>
GK_DEVICE void storeAny(const Columns<Wide> &c, int type, void *base, int64_t at, const float v[4]) {
  if (type == BF16) c.store((uint16_t *)base + at, v);
  else c.store((float *)base + at, v);
}
GK_DEVICE bool wideAny(int type, const void *base, int64_t stride) {
  return type == BF16 ? wide((const uint16_t *)base, stride) : wide((const float *)base, stride);
}

template <bool Wide>
GK_DEVICE void combine(void *y, int typeY, int64_t ldy, int rows, int cols, float alpha, const void *a, int typeA, int64_t lda, float beta,
                       const void *b, int typeB, int64_t ldb) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Columns<Wide> c(cols);
  float v[4], w[4];
  loadAny(c, v, typeA, a, row * lda);
  GK_UNROLL for (int i = 0; i < 4; i++) v[i] *= alpha;
  if (b) {
    loadAny(c, w, typeB, b, row * ldb);
    GK_UNROLL for (int i = 0; i < 4; i++) v[i] = fused(beta, w[i], v[i]);
  }
  storeAny(c, typeY, y, row * ldy, v);
}

template <bool Wide>
GK_DEVICE void scaleRows(float *y, int64_t ldy, int rows, int cols, const float *x, int64_t ldx, const float *scale, int64_t lds) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Columns<Wide> c(cols);
  float v[4], s = scale[row * lds];
  c.loadMutable(v, x + row * ldx);
  GK_UNROLL for (int i = 0; i < 4; i++) v[i] *= s;
  c.store(y + row * ldy, v);
}

}  // namespace

// apply is y = e(x); y may be x.
KERNEL(apply, 256, float *y, int64_t ldy, const float *x, int64_t ldx, int rows, int cols, EPILOGUE) {
  if (cols % 4 == 0 && wide(y, ldy) && wide(x, ldx)) apply<true>(y, ldy, x, ldx, rows, cols, EPILOGUE_GIVEN);
  else apply<false>(y, ldy, x, ldx, rows, cols, EPILOGUE_GIVEN);
}

// combine is y = alpha*a + beta*b; b may be null, and y may be a or b where the types
// are the same. Types are gk::Type: F32 or BF16.
KERNEL(combine, 256, void *y, int typeY, int64_t ldy, int rows, int cols, float alpha, const void *a, int typeA, int64_t lda, float beta,
       const void *b, int typeB, int64_t ldb) {
  if (cols % 4 == 0 && wideAny(typeY, y, ldy) && wideAny(typeA, a, lda) && (!b || wideAny(typeB, b, ldb)))
    combine<true>(y, typeY, ldy, rows, cols, alpha, a, typeA, lda, beta, b, typeB, ldb);
  else
    combine<false>(y, typeY, ldy, rows, cols, alpha, a, typeA, lda, beta, b, typeB, ldb);
}

// scale_rows is y[i] = scale[i] * x[i]; y may be x. scale's rows are lds apart.
KERNEL(scale_rows, 256, float *y, int64_t ldy, int rows, int cols, const float *x, int64_t ldx, const float *scale, int64_t lds) {
  if (cols % 4 == 0 && wide(y, ldy) && wide(x, ldx)) scaleRows<true>(y, ldy, rows, cols, x, ldx, scale, lds);
  else scaleRows<false>(y, ldy, rows, cols, x, ldx, scale, lds);
}

// keep_max keeps the larger element and which it was: where x > y, or first, y = x
// and which = index.
KERNEL(keep_max, 256, float *y, int64_t ldy, int32_t *which, int64_t ldw, int rows, int cols, const float *x, int64_t ldx, int index,
       int first) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Columns<false> c(cols);
  GK_UNROLL for (int i = 0; i < 4; i++) {
    if (!c.has(i)) continue;
    float v = x[row * ldx + c.at(i)];
    if (first || v > y[row * ldy + c.at(i)]) {
      y[row * ldy + c.at(i)] = v;
      which[row * ldw + c.at(i)] = index;
    }
  }
}

// keep_max_back is dx = dy where which is index, else 0.
KERNEL(keep_max_back, 256, float *dx, int64_t ldx, int rows, int cols, const float *dy, int64_t ldy, const int32_t *which, int64_t ldw,
       int index) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Columns<false> c(cols);
  GK_UNROLL for (int i = 0; i < 4; i++)
    if (c.has(i)) dx[row * ldx + c.at(i)] = which[row * ldw + c.at(i)] == index ? dy[row * ldy + c.at(i)] : 0.f;
}

// odd sets *any to 1 if there is an element that is not finite, and else leaves it.
KERNEL(odd, 256, int *any, const float *x, int64_t ldx, int rows, int cols) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Columns<false> c(cols);
  GK_UNROLL for (int i = 0; i < 4; i++)
    if (c.has(i) && (asBits(x[row * ldx + c.at(i)]) & 0x7f800000u) == 0x7f800000u) *any = 1;
}
