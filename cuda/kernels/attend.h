// attend.h: what graph attention's kernels share: how a warp goes along entries, the
// scores of both kinds, and keyed dropout of weights.
#pragma once
#include "heads.h"

// WEIGHT_DROPOUT are the parameters of kernels that drop weights: a head of an entry is
// dropped where its bits under key.With(vertices[own+target]).With(vertices[source]) are
// below threshold, and else multiplied by scale; without dropout the threshold is 0, the
// scale 1, and vertices may be null.
#define WEIGHT_DROPOUT uint64_t key, const uint32_t *vertices, int own, uint32_t threshold, float scale
#define WEIGHT_DROPOUT_GIVEN \
  gk::WeightDropout { key, vertices, own, threshold, scale }

namespace gk {

struct WeightDropout {
  uint64_t key;
  const uint32_t *vertices;
  int own;
  uint32_t threshold;
  float scale;

  GK_MEMBER uint64_t ofTarget(int64_t target) const { return threshold ? childKey(key, vertices[own + target]) : 0; }
  GK_MEMBER uint64_t ofEntry(uint64_t target, int source) const { return threshold ? childKey(target, vertices[source]) : 0; }
  // kept is what a weight is multiplied with, from the key that a lane has of its entry.
  GK_MEMBER float kept(uint64_t entry, int from, int head) const {
    if (!threshold) return 1.f;
    uint32_t low = shuffle((uint32_t)entry, from), high = shuffle((uint32_t)(entry >> 32), from);
    return columnBits((uint64_t)high << 32 | low, (uint32_t)head) < threshold ? 0.f : scale;
  }
};

// along goes along entries, 32 at a time, a lane each, of which step takes several, so
// that as many rows are in flight, and then one by one; heads of several tiles one by one
// only, which keeps the registers of others free. What it adds up it does in an order
// that depends on nothing but how many there are.
template <class Step>
GK_DEVICE void along(int64_t from, int64_t to, const int32_t *ends, Step &step) {
  for (int64_t base = from; base < to; base += 32) {
    int n = (int)(to - base < 32 ? to - base : 32);
    int end = 0;
    uint64_t key = 0;
    if ((int)lane() < n) {
      end = ends[base + lane()];
      key = step.key(end);
    }
    int j = 0;
    for (; step.c.tiles == 1 && j + Step::inFlight <= n; j += Step::inFlight) step.template take<Step::inFlight>(end, key, j);
    for (; j < n; j++) step.template take<1>(end, key, j);
  }
}

// share is e^x for x <= 0, also where that is below the normal numbers: a weight that is
// next to nothing counts where it is multiplied with what is large.
GK_DEVICE float share(float x) {
  bool small = x < -80.f;
  float e = exponential(small ? x + 40.f : x);
  return small ? e * 4.248354255291589e-18f : e;
}

// steep is leaky's slope.
GK_DEVICE float steep(float x, float slope) { return x < 0.f ? slope : 1.f; }
GK_DEVICE float leaky(float x, float slope) { return x * steep(x, slope); }

// Sum is the score of Attend: that of its two ends, which are a number a head.
struct Sum {
  const float *left;
  int64_t ldl;
  float right, slope;

  template <bool Others, bool Wide>
  GK_MEMBER float score(const Heads<Wide> &c, int source, const float *) const {
    return leaky(c.number(left + source * ldl) + right, slope);
  }
};

// Product is the score of AttendV2: that of a and leaky(x[s] + to[t]) over a head, of
// which the warp's tile is here. It is symmetric in x and to: row is the end that stays,
// other the end that comes.
template <bool Wide>
struct Product {
  const float *a, *row, *other;
  int64_t ldo;
  float by[4], own[4], slope;

  GK_MEMBER Product(const Heads<Wide> &c, const float *a, const float *row, const float *other, int64_t ldo, float slope)
      : a(a), row(row), other(other), ldo(ldo), slope(slope) {
    c.load(by, a, c.tile);
    c.load(own, row, c.tile);
  }
  template <bool Others>
  GK_MEMBER float score(const Heads<Wide> &c, int end, const float v[4]) const {
    float s = 0.f;
    GK_UNROLL for (int i = 0; i < 4; i++) s = fused(by[i], leaky(v[i] + own[i], slope), s);
    GK_ROLLED for (int t = 0; Others && t < c.tiles; t++) {
      if (t == c.tile) continue;
      float w[4], u[4], z[4];
      c.load(w, a, t);
      c.load(u, row, t);
      c.load(z, other + end * ldo, t);
      GK_UNROLL for (int i = 0; i < 4; i++) s = fused(w[i], leaky(z[i] + u[i], slope), s);
    }
    return c.sum(s);
  }
};

// A Target is what the way back by sources needs of a head of one, 16 bytes: the
// number of its own end (of Attend), the largest score, 1 over the softmax's sum, and
// the mean, under the softmax, of what its weights get.
struct Target {
  float right, largest, inverse, mean;
};

template <bool Wide>
GK_DEVICE Target loadTarget(const Heads<Wide> &c, const float *targets, int64_t target) {
  if (!c.mine()) return {0.f, 0.f, 0.f, 0.f};
  Float4 f = load4(targets + (target * c.heads + c.head) * 4);
  return {f.x, f.y, f.z, f.w};
}
template <bool Wide>
GK_DEVICE void storeTarget(const Heads<Wide> &c, float *targets, int64_t target, const Target &t) {
  if (c.first()) store4(targets + (target * c.heads + c.head) * 4, Float4{t.right, t.largest, t.inverse, t.mean});
}

}  // namespace gk
