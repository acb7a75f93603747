// Attend: y[t] = the sum over the entries s of t of alpha[t,s] * x[s], where alpha is the
// softmax over the entries, head by head, of their scores, dropped by keys: those of
// Attend are leaky(left[s] + right[t]), those of AttendV2 the product of a and
// leaky(x[s] + to[t]). stats (rows x 2 heads) keeps for each head the largest score and
// the softmax's sum, both 0 in rows without entries.
//
// The softmax is taken on the way: what has been added up shrinks where a larger score
// comes. Launch: heads.h, tiled. Traffic: x once an entry, of which what the cache holds
// is not read again (AttendV2: as many times as a head has tiles), 4 bytes an entry, 4
// an entry and head of left; y once. Nothing an entry is written.
#include "attend.h"

using namespace gk;

namespace {

template <bool Wide, class Score>
struct Forward {
  static constexpr int inFlight = Wide ? 4 : 2;
  const Heads<Wide> &c;
  const Score &score;
  const WeightDropout &drop;
  const float *x;
  int64_t ldx;
  uint64_t target;
  float largest = -3.402823466e38f, total = 0.f, sum[4] = {};

  GK_MEMBER Forward(const Heads<Wide> &c, const Score &score, const WeightDropout &drop, const float *x, int64_t ldx, int64_t row)
      : c(c), score(score), drop(drop), x(x), ldx(ldx), target(drop.ofTarget(row)) {}
  GK_MEMBER uint64_t key(int source) const { return drop.ofEntry(target, source); }

  template <int N>
  GK_MEMBER void take(int mine, uint64_t entry, int j) {
    float v[N][4], s[N], top = largest;
    GK_UNROLL for (int k = 0; k < N; k++) c.load(v[k], x + shuffle(mine, j + k) * ldx, c.tile);
    GK_UNROLL for (int k = 0; k < N; k++) s[k] = score.template score<N == 1>(c, shuffle(mine, j + k), v[k]);
    GK_UNROLL for (int k = 0; k < N; k++) top = larger(top, s[k]);
    float shrink = share(largest - top);
    largest = top;
    total *= shrink;
    GK_UNROLL for (int i = 0; i < 4; i++) sum[i] *= shrink;
    GK_UNROLL for (int k = 0; k < N; k++) {
      float e = share(s[k] - top), w = e * drop.kept(entry, j + k, c.head);
      total += e;
      GK_UNROLL for (int i = 0; i < 4; i++) sum[i] = fused(w, v[k][i], sum[i]);
    }
  }
};

template <bool Wide, class Score>
GK_DEVICE void forward(const Heads<Wide> &c, const Score &score, float *y, int64_t ldy, float *stats, int64_t lds, int64_t row,
                       const int64_t *indptr, const int32_t *indices, const float *x, int64_t ldx, const WeightDropout &drop) {
  int64_t from = indptr[row], to = indptr[row + 1];
  Forward<Wide, Score> f(c, score, drop, x, ldx, row);
  along(from, to, indices, f);
  float inverse = to > from ? 1.f / f.total : 0.f;
  GK_UNROLL for (int i = 0; i < 4; i++) f.sum[i] *= inverse;
  c.store(y + row * ldy, f.sum);
  if (c.first()) {
    stats[row * lds + 2 * c.head] = to > from ? f.largest : 0.f;
    stats[row * lds + 2 * c.head + 1] = f.total;
  }
}

template <bool Wide>
GK_DEVICE void attend(float *y, int64_t ldy, float *stats, int64_t lds, int rows, int heads, int width, int group, const int64_t *indptr,
                      const int32_t *indices, const float *x, int64_t ldx, const float *left, int64_t ldl, const float *right,
                      int64_t ldr, float slope, const WeightDropout &drop) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Heads<Wide> c(heads, width, group, true);
  Sum score = {left, ldl, c.number(right + row * ldr), slope};
  forward(c, score, y, ldy, stats, lds, row, indptr, indices, x, ldx, drop);
}

template <bool Wide>
GK_DEVICE void attendV2(float *y, int64_t ldy, float *stats, int64_t lds, int rows, int heads, int width, int group,
                        const int64_t *indptr, const int32_t *indices, const float *x, int64_t ldx, const float *to, int64_t ldt,
                        const float *a, float slope, const WeightDropout &drop) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  Heads<Wide> c(heads, width, group, true);
  Product<Wide> score(c, a, to + row * ldt, x, ldx, slope);
  forward(c, score, y, ldy, stats, lds, row, indptr, indices, x, ldx, drop);
}

}  // namespace

KERNEL(attend, 256, float *y, int64_t ldy, float *stats, int64_t lds, int rows, int heads, int width, int group, const int64_t *indptr,
       const int32_t *indices, const float *x, int64_t ldx, const float *left, int64_t ldl, const float *right, int64_t ldr, float slope,
       WEIGHT_DROPOUT) {
  if (wideHeads(y, ldy, width) && wideHeads(x, ldx, width))
    attend<true>(y, ldy, stats, lds, rows, heads, width, group, indptr, indices, x, ldx, left, ldl, right, ldr, slope,
                 WEIGHT_DROPOUT_GIVEN);
  else
    attend<false>(y, ldy, stats, lds, rows, heads, width, group, indptr, indices, x, ldx, left, ldl, right, ldr, slope,
                  WEIGHT_DROPOUT_GIVEN);
}

KERNEL(attend_v2, 256, float *y, int64_t ldy, float *stats, int64_t lds, int rows, int heads, int width, int group,
       const int64_t *indptr, const int32_t *indices, const float *x, int64_t ldx, const float *to, int64_t ldt, const float *a,
       float slope, WEIGHT_DROPOUT) {
  if (wideHeads(y, ldy, width) && wideHeads(x, ldx, width) && wideHeads(to, ldt, width) && wideHeads(a, 0, width))
    attendV2<true>(y, ldy, stats, lds, rows, heads, width, group, indptr, indices, x, ldx, to, ldt, a, slope, WEIGHT_DROPOUT_GIVEN);
  else
    attendV2<false>(y, ldy, stats, lds, rows, heads, width, group, indptr, indices, x, ldx, to, ldt, a, slope, WEIGHT_DROPOUT_GIVEN);
}
