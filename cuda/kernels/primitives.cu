// Primitives: kernels that use one primitive of gk.h each, or a few, and nothing else
// that could be wrong. The emulator and a GPU must give the same: a wrong letter in a
// line of inline PTX shows here and nowhere else. Launch: one block of 32, or as said.
#include "keyed.h"

using namespace gk;

// check_warp: out[0..31] the neighbour's number by shuffle, then that of the lane
// across 5 by shuffleXor, then the votes of odd lanes, then sum and largest,
// and a sum of doubles.
KERNEL(check_warp, 32, uint32_t *out) {
  uint32_t l = lane();
  out[l] = shuffle(l * 7, (int)(l + 1) % 32);
  out[32 + l] = shuffleXor(l * 7, 5);
  out[64 + l] = votes(l % 2 == 1);
  out[96 + l] = asBits(sumOfWarp((float)l));
  out[128 + l] = asBits(maxOfWarp((float)(l * 11 % 32)));
  out[160 + l] = (uint32_t)sumOfWarp((double)l * 1e6 + 0.25);
}

// check_block, blocks of 256: out[i] = i of the thread across the block, through
// shared memory; and one atomic of each kind on counts[0..3], each from every thread.
KERNEL(check_block, 256, uint32_t *out, int *counts, float *sum, uint32_t *claimed) {
  using Words = uint32_t[256];
  SHARED(Words, words);
  words[thread()] = blockX() * 1000 + thread();
  barrier();
  out[blockX() * 256 + thread()] = words[255 - thread()];
  addAtomic(&counts[0], 1);
  minAtomic(&counts[1], -(int)thread());
  addAtomic(sum, 0.5f);
  if (swapAtomic(claimed, 0, 1) == 0) addAtomic(&counts[2], 1);
}

// check_copy: 2 groups of asynchronous copies, of 16 and of 4 bytes, of which the
// last is cut: out = from[0..127] and from[128..159], beyond `there` floats 0.
KERNEL(check_copy, 32, float *out, const float *from, int there) {
  using Floats = float[160];
  SHARED(Floats, floats);
  int left = there - 4 * (int)lane();
  if (left >= 4) copy16(floats + 4 * lane(), from + 4 * lane());
  else copy16(floats + 4 * lane(), left > 0 ? from + 4 * lane() : from, left > 0 ? 4 * left : 0);
  copyCommit();
  copy4(floats + 128 + lane(), from + 128 + lane(), lane() == 31 ? 0 : 4);
  copyCommit();
  copyWait<1>();
  warpBarrier();
  for (int i = 0; i < 4; i++) out[i * 32 + lane()] = floats[i * 32 + lane()];
  copyWait<0>();
  warpBarrier();
  out[128 + lane()] = floats[128 + lane()];
}

// check_memory: the wide loads and stores, float and bf16: to = from.
KERNEL(check_memory, 32, float *to, const float *from, uint16_t *toHalf, const uint16_t *fromHalf) {
  unsigned l = lane();
  Float4 a = load4(from + 4 * l), b = loadMutable4(from + 128 + 4 * l);
  store4(to + 4 * l, a);
  store2(to + 128 + 4 * l, {b.x, b.y});
  store2(to + 130 + 4 * l, {b.z, b.w});
  store4(toHalf + 4 * l, load4(fromHalf + 4 * l));
  store4(toHalf + 128 + 4 * l, loadMutable4(fromHalf + 128 + 4 * l));
}

// check_mma: d (16 x 8) = a (16 x 8, or 16 x 16 of bf16) * b, row-major; out has both,
// one after the other.
KERNEL(check_mma, 32, float *out, const float *a, const float *b, const uint16_t *a16, const uint16_t *b16) {
  int g = (int)lane() / 4, q = (int)lane() % 4;
  float d[2][4] = {};
  uint32_t x[4], y[2];
  GK_UNROLL for (int i = 0; i < 4; i++) x[i] = tf32(a[(g + i % 2 * 8) * 8 + q + i / 2 * 4]);
  GK_UNROLL for (int i = 0; i < 2; i++) y[i] = tf32(b[(q + i * 4) * 8 + g]);
  mmaTF32(d[0], x, y);
  GK_UNROLL for (int i = 0; i < 4; i++) {
    const uint16_t *p = a16 + (g + i % 2 * 8) * 16 + 2 * q + i / 2 * 8;
    x[i] = p[0] | (uint32_t)p[1] << 16;
  }
  GK_UNROLL for (int i = 0; i < 2; i++) {
    const uint16_t *p = b16 + (2 * q + i * 8) * 8 + g;
    y[i] = p[0] | (uint32_t)p[8] << 16;
  }
  mmaBF16(d[1], x, y);
  GK_UNROLL for (int n = 0; n < 2; n++)
    GK_UNROLL for (int i = 0; i < 4; i++) out[n * 128 + (g + i / 2 * 8) * 8 + 2 * q + i % 2] = d[n][i];
}

// check_numbers: out[f*n + i] = function f of x[i]: e^x, ln |x|, e^-|x| - 1, the root of
// |x|, 1 over it, x rounded to tf32 and to bf16, x*x - 1 rounded once.
KERNEL(check_numbers, 256, float *out, const float *x, int n) {
  int i = (int)(blockX() * threads() + thread());
  if (i >= n) return;
  float v = x[i], positive = v < 0.f ? -v : v;
  out[i] = exponential(v);
  out[n + i] = logarithm(positive);
  out[2 * n + i] = exponentialLess1(-positive);
  out[3 * n + i] = root(positive);
  out[4 * n + i] = rsqrtApprox(positive);
  out[5 * n + i] = asFloat((uncut(v) & 0xffffe000u) == tf32(v) ? tf32(v) : 0x7fc00000u);
  out[6 * n + i] = widen(narrow(v));
  out[7 * n + i] = fused(v, v, -1.f);
}

// check_halves: out[i] has x[2i] rounded to bf16 in its lower half, x[2i+1] in its upper.
KERNEL(check_halves, 256, uint32_t *out, const float *x, int n) {
  int i = (int)(blockX() * threads() + thread());
  if (i < n) out[i] = halves(x[2 * i], x[2 * i + 1]);
}

// check_keyed: for (keys[i], numbers[i]) the child, the first draw of 64 bits, the second
// below the number, and the column's bits.
KERNEL(check_keyed, 256, uint64_t *out, const uint64_t *keys, const uint64_t *numbers, int n) {
  int i = (int)(blockX() * threads() + thread());
  if (i >= n) return;
  uint64_t sequence = keys[i];
  out[4 * i] = childKey(keys[i], numbers[i]);
  out[4 * i + 1] = nextDraw(sequence);
  out[4 * i + 2] = drawBelow(sequence, numbers[i]);
  out[4 * i + 3] = columnBits(keys[i], (uint32_t)numbers[i]);
}
