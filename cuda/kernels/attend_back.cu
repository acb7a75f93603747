// AttendBack: the gradients of Attend. A weight gets kept * dy[t].x[s], and a score
// alpha * (that - its mean under the softmax). Weights are computed anew from stats;
// nothing an entry is kept.
//
// attend_back_targets goes by rows and sets dright and what attend_back_sources needs of
// targets; that goes by columns (tensor.Transpose) and sets dx and dleft: each row is
// written once, by one warp, in a fixed order.
//
// Launch: heads.h, the first not tiled, the second tiled. Traffic: x once an entry, then
// dy once an entry (as many times as a head has tiles); 20 bytes an entry and head.
#include "attend.h"

using namespace gk;

namespace {

template <bool Wide>
struct Targets {
  static constexpr int inFlight = Wide ? 4 : 2;
  const Heads<Wide> &c;
  const WeightDropout &drop;
  const float *left, *x, *dy;
  int64_t ldl, ldx;
  float right, slope, largest, inverse;
  uint64_t target;
  float own[4];
  // Sums of alpha * what it gets; of that and leaky's slope; of alpha and that slope.
  float mean = 0.f, steeped = 0.f, slopes = 0.f;

  GK_MEMBER uint64_t key(int source) const { return drop.ofEntry(target, source); }
  template <int N>
  GK_MEMBER void take(int mine, uint64_t entry, int j) {
    float v[N][4];
    GK_UNROLL for (int k = 0; k < N; k++) c.load(v[k], x + shuffle(mine, j + k) * ldx, 0);
    GK_UNROLL for (int k = 0; k < N; k++) {
      int source = shuffle(mine, j + k);
      float s = c.number(left + source * ldl) + right, slant = steep(s, slope);
      float alpha = share(s * slant - largest) * inverse;
      float gets = alpha * drop.kept(entry, j + k, c.head) * c.template product<N == 1>(v[k], own, x + source * ldx, dy);
      mean += gets;
      steeped = fused(gets, slant, steeped);
      slopes = fused(alpha, slant, slopes);
    }
  }
};

template <bool Wide>
GK_DEVICE void targets(float *known, float *dright, int64_t ldg, int rows, int heads, int width, int group, const int64_t *indptr,
                       const int32_t *indices, const float *dy, int64_t ldy, const float *stats, int64_t lds, const float *x, int64_t ldx,
                       const float *left, int64_t ldl, const float *right, int64_t ldr, float slope, const WeightDropout &drop) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Heads<Wide> c(heads, width, group, false);
  float end = c.number(right + row * ldr);
  float largest = c.mine() ? stats[row * lds + 2 * c.head] : 0.f, inverse = c.mine() ? 1.f / stats[row * lds + 2 * c.head + 1] : 0.f;
  Targets<Wide> t = {c, drop, left, x, dy + row * ldy, ldl, ldx, end, slope, largest, inverse, drop.ofTarget(row), {}};
  c.load(t.own, t.dy, 0);
  along(indptr[row], indptr[row + 1], indices, t);
  if (c.first()) dright[row * ldg + c.head] = t.steeped - t.mean * t.slopes;
  storeTarget(c, known, row, {end, largest, inverse, t.mean});
}

template <bool Wide>
struct Sources {
  static constexpr int inFlight = Wide ? 4 : 2;
  const Heads<Wide> &c;
  const WeightDropout &drop;
  const float *known, *x, *dy;
  int64_t ldy, source;
  float left, slope;
  float own[4], sum[4] = {}, dleft = 0.f;

  GK_MEMBER uint64_t key(int target) const { return drop.ofEntry(drop.ofTarget(target), (int)source); }
  template <int N>
  GK_MEMBER void take(int mine, uint64_t entry, int j) {
    float v[N][4];
    GK_UNROLL for (int k = 0; k < N; k++) c.load(v[k], dy + shuffle(mine, j + k) * ldy, c.tile);
    GK_UNROLL for (int k = 0; k < N; k++) {
      int target = shuffle(mine, j + k);
      Target t = loadTarget(c, known, target);
      float s = left + t.right, slant = steep(s, slope);
      float alpha = share(s * slant - t.largest) * t.inverse, kept = drop.kept(entry, j + k, c.head);
      float gets = kept * c.template product<N == 1>(v[k], own, dy + target * ldy, x);
      dleft = fused(alpha * (gets - t.mean), slant, dleft);
      GK_UNROLL for (int i = 0; i < 4; i++) sum[i] = fused(alpha * kept, v[k][i], sum[i]);
    }
  }
};

template <bool Wide>
GK_DEVICE void sources(float *dx, int64_t ldd, float *dleft, int64_t ldg, int rows, int heads, int width, int group,
                       const int64_t *columns, const int32_t *ends, const float *known, const float *dy, int64_t ldy, const float *x,
                       int64_t ldx, const float *left, int64_t ldl, float slope, const WeightDropout &drop) {
  int64_t source = rowOfWarp();
  if (source >= rows) return;
  Heads<Wide> c(heads, width, group, true);
  Sources<Wide> s = {c, drop, known, x + source * ldx, dy, ldy, source, c.number(left + source * ldl), slope, {}};
  c.load(s.own, s.x, c.tile);
  along(columns[source], columns[source + 1], ends, s);
  c.store(dx + source * ldd, s.sum);
  if (c.first()) dleft[source * ldg + c.head] = s.dleft;
}

}  // namespace

// attend_back_targets: known has 4 * heads floats for each of rows targets, without gaps.
KERNEL(attend_back_targets, 256, float *known, float *dright, int64_t ldg, int rows, int heads, int width, int group,
       const int64_t *indptr, const int32_t *indices, const float *dy, int64_t ldy, const float *stats, int64_t lds, const float *x,
       int64_t ldx, const float *left, int64_t ldl, const float *right, int64_t ldr, float slope, WEIGHT_DROPOUT) {
  if (wideHeads(x, ldx, width) && wideHeads(dy, ldy, width))
    targets<true>(known, dright, ldg, rows, heads, width, group, indptr, indices, dy, ldy, stats, lds, x, ldx, left, ldl, right, ldr,
                  slope, WEIGHT_DROPOUT_GIVEN);
  else
    targets<false>(known, dright, ldg, rows, heads, width, group, indptr, indices, dy, ldy, stats, lds, x, ldx, left, ldl, right, ldr,
                   slope, WEIGHT_DROPOUT_GIVEN);
}

// attend_back_sources: rows is how many sources there are; columns and ends are the
// Transpose.
KERNEL(attend_back_sources, 256, float *dx, int64_t ldd, float *dleft, int64_t ldg, int rows, int heads, int width, int group,
       const int64_t *columns, const int32_t *ends, const float *known, const float *dy, int64_t ldy, const float *x, int64_t ldx,
       const float *left, int64_t ldl, float slope, WEIGHT_DROPOUT) {
  if (wideHeads(dx, ldd, width) && wideHeads(x, ldx, width) && wideHeads(dy, ldy, width))
    sources<true>(dx, ldd, dleft, ldg, rows, heads, width, group, columns, ends, known, dy, ldy, x, ldx, left, ldl, slope,
                  WEIGHT_DROPOUT_GIVEN);
  else
    sources<false>(dx, ldd, dleft, ldg, rows, heads, width, group, columns, ends, known, dy, ldy, x, ldx, left, ldl, slope,
                   WEIGHT_DROPOUT_GIVEN);
}
