// Updates of weights from their gradients, element by element: n of them, without
// gaps, so that one launch has all weights of a model where they lie in a row.
//
// Launch: blocks of 256, a thread an element, n/256 blocks rounded up.
// Traffic: adam 16 bytes read and 12 written an element, sgd 12 and 8.
#include "gk.h"

using namespace gk;

// adam: keep1 is 1-beta1, keep2 1-beta2; correct1 and correct2 are 1-beta^step, all
// rounded from what was worked out in double. Decoupled decay takes rate*decay*w of
// the weight as it was; else the gradient gets decay*w.
KERNEL(adam, 256, float *w, const float *g, float *m, float *v, int64_t n, float rate, float beta1, float keep1, float beta2, float keep2,
       float epsilon, float decay, int decoupled, float correct1, float correct2) {
  int64_t i = (int64_t)blockX() * threads() + thread();
  if (i >= n) return;
  float before = w[i], x = g[i];
  if (!decoupled) x = fused(decay, before, x);
  float first = fused(beta1, m[i], keep1 * x), second = fused(beta2, v[i], keep2 * x * x);
  float after = before - rate * (first / correct1) / (root(second / correct2) + epsilon);
  if (decoupled) after -= rate * decay * before;
  m[i] = first;
  v[i] = second;
  w[i] = after;
}

// sgd is m = momentum*m + (g + decay*w), w -= rate*m. m may be null if momentum is 0;
// what it held does not count then.
KERNEL(sgd, 256, float *w, const float *g, float *m, int64_t n, float rate, float momentum, float decay) {
  int64_t i = (int64_t)blockX() * threads() + thread();
  if (i >= n) return;
  float x = fused(decay, w[i], g[i]);
  if (momentum != 0.f) x = fused(momentum, m[i], x);
  if (m) m[i] = x;
  w[i] -= rate * x;
}
