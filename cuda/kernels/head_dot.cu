// HeadDot: y[i,h] = the product of x[i] and a over the columns of head h; and its
// gradients.
//
// Launch: head_dot as heads.h, not tiled; head_dot_back as partials.h. Traffic: x once;
// back x and dy once and dx twice.
#include "heads.h"
#include "partials.h"

using namespace gk;

namespace {

template <bool Wide>
GK_DEVICE void headDot(float *y, int64_t ldy, const float *x, int64_t ldx, const float *a, int rows, int heads, int width, int group) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Heads<Wide> c(heads, width, group, false);
  const float *from = x + row * ldx;
  float v[4], w[4];
  c.load(v, from, 0);
  c.load(w, a, 0);
  float product = c.template product<true>(v, w, from, a);
  if (c.first()) y[row * ldy + c.head] = product;
}

template <bool Wide>
GK_DEVICE void headDotBack(float *dx, int64_t ldd, float *partial, Sums &sums, const float *dy, int64_t ldy, const float *x, int64_t ldx,
                           const float *a, int rows, int cols, int width, int each) {
  Columns<Wide> c(cols);
  int64_t first = (int64_t)blockX() * each, end = first + each < rows ? first + each : rows;
  float by[4], sum[4] = {};
  int head[4];
  c.load(by, a);
  GK_UNROLL for (int i = 0; i < 4; i++) head[i] = c.at(i) / width;
  for (int64_t row = first + warp(); row < end; row += warpsOfBlock) {
    float v[4], to[4];
    c.load(v, x + row * ldx);
    c.loadMutable(to, dx + row * ldd);
    GK_UNROLL for (int i = 0; i < 4; i++) {
      float g = c.has(i) ? dy[row * ldy + head[i]] : 0.f;
      to[i] = fused(g, by[i], to[i]);
      sum[i] = fused(g, v[i], sum[i]);
    }
    c.store(dx + row * ldd, to);
  }
  together(partial, sums, c, sum);
}

}  // namespace

KERNEL(head_dot, 256, float *y, int64_t ldy, const float *x, int64_t ldx, const float *a, int rows, int heads, int width, int group) {
  if (wideHeads(x, ldx, width) && wideHeads(a, 0, width)) headDot<true>(y, ldy, x, ldx, a, rows, heads, width, group);
  else headDot<false>(y, ldy, x, ldx, a, rows, heads, width, group);
}

// head_dot_back adds to dx, and makes the partials of da.
KERNEL(head_dot_back, 256, float *dx, int64_t ldd, float *partial, const float *dy, int64_t ldy, const float *x, int64_t ldx,
       const float *a, int rows, int cols, int width, int each) {
  SHARED(Sums, sums);
  if (cols % 4 == 0 && wide(dx, ldd) && wide(x, ldx) && wide(a, 0)) headDotBack<true>(dx, ldd, partial, sums, dy, ldy, x, ldx, a, rows, cols, width, each);
  else headDotBack<false>(dx, ldd, partial, sums, dy, ldy, x, ldx, a, rows, cols, width, each);
}
