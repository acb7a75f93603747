// Losses of rows of logits, with the gradient of scale times their sum, and how many
// rows are right: those whose first largest logit is the label's. A label below 0:
// none, and a gradient of 0.
//
// Launch: blocks of 256; a warp a row, and the next row `8 * blocks` on, so that any
// number of blocks does. Each writes one Tally; add_tallies, one block of 32, adds
// them up: a lane every 32nd, and then all, in an order that depends on how many there
// are. Traffic: the logits three times, of which two from the cache, the
// gradient once.
#include "gk.h"

using namespace gk;

namespace {

struct Tally {
  double loss;
  int64_t right;
};
using Tallies = Tally[8];

// firstLargest is the row's largest logit, and where the first of such stands.
GK_DEVICE float firstLargest(const float *z, int cols, int &where) {
  float best = -__builtin_huge_valf();
  int at = 0x7fffffff;
  for (int c = (int)lane(); c < cols; c += 32) {
    float v = z[c];
    if (at == 0x7fffffff || v > best) best = v, at = c;
  }
  for (int d = 16; d; d >>= 1) {
    float other = shuffleXor(best, d);
    int from = shuffleXor(at, d);
    if (other > best || (other == best && from < at) || at == 0x7fffffff) best = other, at = from;
  }
  where = at;
  return best;
}

// crossEntropy is the loss of one row, and its gradient if dz is given. dz may be z:
// all that others read of the row is read before any lane writes.
GK_DEVICE float crossEntropy(float *dz, const float *z, int cols, int label, float largest, float scale) {
  float sum = 0.f;
  for (int c = (int)lane(); c < cols; c += 32) sum += exponential(z[c] - largest);
  sum = sumOfWarp(sum);
  float own = z[label];
  warpBarrier();
  if (dz) {
    float share = scale / sum;
    for (int c = (int)lane(); c < cols; c += 32) dz[c] = exponential(z[c] - largest) * share - (c == label ? scale : 0.f);
  }
  return logarithm(sum) + largest - own;
}

// binary is the loss of one row of yes or no a column, and its gradient.
GK_DEVICE float binary(float *dz, const float *z, int cols, int label, float scale) {
  float loss = 0.f;
  for (int c = (int)lane(); c < cols; c += 32) {
    float v = z[c];
    float small = exponential(v < 0.f ? v : -v);
    float yes = (v < 0.f ? small : 1.f) / (1.f + small);
    loss += (v > 0.f ? v : v == v ? 0.f : v) + logarithm(1.f + small);
    if (c == label) loss -= v;
    if (dz) dz[c] = scale * yes - (c == label ? scale : 0.f);
  }
  return sumOfWarp(loss);
}

template <bool Binary>
GK_DEVICE void judge(Tally *tally, Tallies &warps, float *dz, int64_t ldd, const float *z, int64_t ldz, const int32_t *labels, int rows,
                     int cols, float scale) {
  double loss = 0;
  int right = 0;
  for (int row = (int)(blockX() * 8 + warp()); row < rows; row += (int)blocksX() * 8) {
    int label = labels[row];
    float *grad = dz ? dz + row * ldd : nullptr;
    if (label < 0) {
      for (int c = (int)lane(); grad && c < cols; c += 32) grad[c] = 0.f;
      continue;
    }
    const float *logits = z + row * ldz;
    int where;
    float largest = firstLargest(logits, cols, where);
    right += where == label;
    loss += Binary ? binary(grad, logits, cols, label, scale) : crossEntropy(grad, logits, cols, label, largest, scale);
  }
  if (lane() == 0) warps[warp()] = {loss, right};
  barrier();
  if (thread() == 0) {
    Tally all = warps[0];
    for (int w = 1; w < 8; w++) all.loss += warps[w].loss, all.right += warps[w].right;
    tally[blockX()] = all;
  }
}

}  // namespace

// cross_entropy: dz may be null, or z. tally has a loss (double) and a count (int64)
// a block.
KERNEL(cross_entropy, 256, void *tally, float *dz, int64_t ldd, const float *z, int64_t ldz, const int32_t *labels, int rows, int cols,
       float scale) {
  SHARED(Tallies, warps);
  judge<false>((Tally *)tally, warps, dz, ldd, z, ldz, labels, rows, cols, scale);
}

// binary_cross_entropy: the loss of a row is the sum over columns, column c being yes
// if c is the label.
KERNEL(binary_cross_entropy, 256, void *tally, float *dz, int64_t ldd, const float *z, int64_t ldz, const int32_t *labels, int rows,
       int cols, float scale) {
  SHARED(Tallies, warps);
  judge<true>((Tally *)tally, warps, dz, ldd, z, ldz, labels, rows, cols, scale);
}

// add_tallies adds to *sum what n blocks wrote.
KERNEL(add_tallies, 32, void *sum, const void *tally, int n) {
  double loss = 0;
  int right = 0;  // of at most as many rows as an int counts
  for (int i = (int)lane(); i < n; i += 32) loss += ((const Tally *)tally)[i].loss, right += (int)((const Tally *)tally)[i].right;
  loss = sumOfWarp(loss);
  right = sumOfWarp(right);
  if (lane() != 0) return;
  ((Tally *)sum)->loss += loss;
  ((Tally *)sum)->right += right;
}
