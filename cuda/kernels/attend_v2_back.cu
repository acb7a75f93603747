// AttendV2Back: the gradients of AttendV2, as attend_back.cu has them: scores and weights
// are computed anew, and nothing an entry is kept. attend_v2_back_targets goes by rows
// and sets dto and what attend_v2_back_sources needs of targets; that goes by columns
// (tensor.Transpose) and sets dx and the partials of da.
//
// Launch: heads.h, tiled, but the second with sources/each, rounded up, for rows/8: a row
// of partial for each block along the grid's first number.
// Traffic, as many times as a head has tiles: x once an entry, then dy and to once an
// entry; 16 bytes an entry and head.
#include "attend.h"
#include "partials.h"

using namespace gk;

namespace {

template <bool Wide>
struct Targets {
  static constexpr int inFlight = 2;
  const Heads<Wide> &c;
  const WeightDropout &drop;
  const Product<Wide> &score;
  const float *x, *dy;
  int64_t ldx;
  float largest, inverse;
  uint64_t target;
  float own[4];
  // Sums of alpha * what it gets; of that and leaky's slope; of alpha and that slope.
  float mean = 0.f, steeped[4] = {}, slopes[4] = {};

  GK_MEMBER uint64_t key(int source) const { return drop.ofEntry(target, source); }
  template <int N>
  GK_MEMBER void take(int mine, uint64_t entry, int j) {
    float v[N][4];
    GK_UNROLL for (int k = 0; k < N; k++) c.load(v[k], x + shuffle(mine, j + k) * ldx, c.tile);
    GK_UNROLL for (int k = 0; k < N; k++) {
      int source = shuffle(mine, j + k);
      float alpha = share(score.template score<N == 1>(c, source, v[k]) - largest) * inverse;
      float gets = alpha * drop.kept(entry, j + k, c.head) * c.template product<N == 1>(v[k], own, x + source * ldx, dy);
      mean += gets;
      GK_UNROLL for (int i = 0; i < 4; i++) {
        float slant = steep(v[k][i] + score.own[i], score.slope);
        steeped[i] = fused(gets, slant, steeped[i]);
        slopes[i] = fused(alpha, slant, slopes[i]);
      }
    }
  }
};

template <bool Wide>
GK_DEVICE void targets(float *known, float *dto, int64_t ldg, int rows, int heads, int width, int group, const int64_t *indptr,
                       const int32_t *indices, const float *dy, int64_t ldy, const float *stats, int64_t lds, const float *x, int64_t ldx,
                       const float *to, int64_t ldt, const float *a, float slope, const WeightDropout &drop) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Heads<Wide> c(heads, width, group, true);
  Product<Wide> score(c, a, to + row * ldt, x, ldx, slope);
  float largest = c.mine() ? stats[row * lds + 2 * c.head] : 0.f, inverse = c.mine() ? 1.f / stats[row * lds + 2 * c.head + 1] : 0.f;
  Targets<Wide> t = {c, drop, score, x, dy + row * ldy, ldx, largest, inverse, drop.ofTarget(row), {}};
  c.load(t.own, t.dy, c.tile);
  along(indptr[row], indptr[row + 1], indices, t);
  GK_UNROLL for (int i = 0; i < 4; i++) t.steeped[i] = score.by[i] * (t.steeped[i] - t.mean * t.slopes[i]);
  c.store(dto + row * ldg, t.steeped);
  storeTarget(c, known, row, {0.f, largest, inverse, t.mean});
}

template <bool Wide>
struct Sources {
  static constexpr int inFlight = 2;
  const Heads<Wide> &c;
  const WeightDropout &drop;
  const Product<Wide> &score;
  const float *known, *dy, *to;
  int64_t ldy, ldt, source;
  float *da, sum[4] = {};

  GK_MEMBER uint64_t key(int target) const { return drop.ofEntry(drop.ofTarget(target), (int)source); }
  template <int N>
  GK_MEMBER void take(int mine, uint64_t entry, int j) {
    float v[N][4], u[N][4];
    GK_UNROLL for (int k = 0; k < N; k++) {
      int target = shuffle(mine, j + k);
      c.load(v[k], dy + target * ldy, c.tile);
      c.load(u[k], to + target * ldt, c.tile);
    }
    GK_UNROLL for (int k = 0; k < N; k++) {
      int target = shuffle(mine, j + k);
      Target t = loadTarget(c, known, target);
      float alpha = share(score.template score<N == 1>(c, target, u[k]) - t.largest) * t.inverse, kept = drop.kept(entry, j + k, c.head);
      float gets = kept * c.template product<N == 1>(v[k], score.own, dy + target * ldy, score.row);
      float back = alpha * (gets - t.mean);
      GK_UNROLL for (int i = 0; i < 4; i++) {
        sum[i] = fused(alpha * kept, v[k][i], sum[i]);
        float z = u[k][i] + score.own[i], slant = steep(z, score.slope);
        sum[i] = fused(back, score.by[i] * slant, sum[i]);
        da[i] = fused(back, z * slant, da[i]);
      }
    }
  }
};

template <bool Wide>
GK_DEVICE void sources(float *dx, int64_t ldd, float *partial, Sums &sums, int rows, int heads, int width, int group, int each,
                       const int64_t *columns, const int32_t *ends, const float *known, const float *dy, int64_t ldy, const float *x,
                       int64_t ldx, const float *to, int64_t ldt, const float *a, float slope, const WeightDropout &drop) {
  Heads<Wide> c(heads, width, group, true);
  int64_t first = (int64_t)blockX() * each, end = first + each < rows ? first + each : rows;
  float da[4] = {};
  for (int64_t source = first + warp(); source < end; source += warpsOfBlock) {
    Product<Wide> score(c, a, x + source * ldx, to, ldt, slope);
    Sources<Wide> s = {c, drop, score, known, dy, to, ldy, ldt, source, da};
    along(columns[source], columns[source + 1], ends, s);
    c.store(dx + source * ldd, s.sum);
  }
  GK_UNROLL for (int i = 0; i < 4; i++) sums[warp()][lane() + 32 * i] = da[i];
  barrier();
  if (warp() != 0) return;
  GK_UNROLL for (int i = 0; i < 4; i++) {
    float sum = 0.f;
    for (int w = 0; w < warpsOfBlock; w++) sum += sums[w][lane() + 32 * i];
    if (c.has(c.tile, i)) partial[((int64_t)blockX() * heads + c.head) * width + c.at(c.tile, i)] = sum;
  }
}

}  // namespace

// attend_v2_back_targets: known has 4 * heads floats for each of rows targets, without
// gaps.
KERNEL(attend_v2_back_targets, 256, float *known, float *dto, int64_t ldg, int rows, int heads, int width, int group,
       const int64_t *indptr, const int32_t *indices, const float *dy, int64_t ldy, const float *stats, int64_t lds, const float *x,
       int64_t ldx, const float *to, int64_t ldt, const float *a, float slope, WEIGHT_DROPOUT) {
  if (wideHeads(dto, ldg, width) && wideHeads(dy, ldy, width) && wideHeads(x, ldx, width) && wideHeads(to, ldt, width) &&
      wideHeads(a, 0, width))
    targets<true>(known, dto, ldg, rows, heads, width, group, indptr, indices, dy, ldy, stats, lds, x, ldx, to, ldt, a, slope,
                  WEIGHT_DROPOUT_GIVEN);
  else
    targets<false>(known, dto, ldg, rows, heads, width, group, indptr, indices, dy, ldy, stats, lds, x, ldx, to, ldt, a, slope,
                   WEIGHT_DROPOUT_GIVEN);
}

// attend_v2_back_sources: rows is how many sources there are; columns and ends are the
// Transpose.
KERNEL(attend_v2_back_sources, 256, float *dx, int64_t ldd, float *partial, int rows, int heads, int width, int group, int each,
       const int64_t *columns, const int32_t *ends, const float *known, const float *dy, int64_t ldy, const float *x, int64_t ldx,
       const float *to, int64_t ldt, const float *a, float slope, WEIGHT_DROPOUT) {
  SHARED(Sums, sums);
  if (wideHeads(dx, ldd, width) && wideHeads(dy, ldy, width) && wideHeads(x, ldx, width) && wideHeads(to, ldt, width) &&
      wideHeads(a, 0, width))
    sources<true>(dx, ldd, partial, sums, rows, heads, width, group, each, columns, ends, known, dy, ldy, x, ldx, to, ldt, a, slope,
                  WEIGHT_DROPOUT_GIVEN);
  else
    sources<false>(dx, ldd, partial, sums, rows, heads, width, group, each, columns, ends, known, dy, ldy, x, ldx, to, ldt, a, slope,
                   WEIGHT_DROPOUT_GIVEN);
}
