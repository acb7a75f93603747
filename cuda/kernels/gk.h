// gk.h is what kernels are written against: a kernel includes this, its family's
// headers, and nothing else. Three compilers read it:
//
//   clang-19, without any CUDA toolkit: the PTX that ships
//   nvcc: a second opinion on the same text
//   g++ with -DGK_HOST: the emulator, one fiber a thread (../emulator/host.h)
//
// device.h and host.h define the same primitives, the first by inline PTX, the
// second by plain C++. Here is what all share. What is warp-wide wants all 32 lanes:
// there are no masks, and a block is whole warps. Every thread of a block reaches
// every barrier.
#pragma once

namespace gk {
struct alignas(16) Float4 {
  float x, y, z, w;
};
struct alignas(8) Float2 {
  float x, y;
};
struct alignas(16) UInt4 {
  unsigned x, y, z, w;
};
struct alignas(8) UInt2 {
  unsigned x, y;
};
}  // namespace gk

#ifdef GK_HOST
#include "../emulator/host.h"
#else
#include "device.h"
#endif

namespace gk {

// The types of elements, numbered as engine/tensor does.
enum Type { F32 = 0, BF16 = 2, I32 = 3 };

// lane is the thread's place in its warp, warp the warp's in its block.
GK_DEVICE unsigned lane() { return thread() & 31; }
GK_DEVICE unsigned warp() { return thread() >> 5; }

// widen is the float whose upper half these bits are.
GK_DEVICE float widen(uint16_t b) { return asFloat((uint32_t)b << 16); }

// narrow rounds to bf16, to even; a NaN stays one.
GK_DEVICE uint16_t narrow(float f) {
  uint32_t u = asBits(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40);
  return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

// exponential is e^x to a few units in the last place. The product with log2(e) is
// kept in two parts, or large x would lose digits. Above 0 it is for small x only.
GK_DEVICE float exponential(float x) {
  if (x < -103.f) return 0.f;
  const float log2e = 1.4426950408889634f, rest = 1.9259629911e-8f, ln2 = 0.6931471805599453f;
  float high = x * log2e;
  float low = fused(x, rest, fused(x, log2e, -high));
  float e = exp2Approx(high);
  return fused(e, low * ln2, e);
}

// logarithm is ln x for normal x; its error is absolute near 1.
GK_DEVICE float logarithm(float x) { return log2Approx(x) * 0.6931471805599453f; }

// exponentialLess1 is e^x - 1 for x <= 0, by its series where the difference would
// lose digits.
GK_DEVICE float exponentialLess1(float x) {
  if (x < -0.5f) return exponential(x) - 1.f;
  float s = 1.f / 40320;
  s = fused(s, x, 1.f / 5040);
  s = fused(s, x, 1.f / 720);
  s = fused(s, x, 1.f / 120);
  s = fused(s, x, 1.f / 24);
  s = fused(s, x, 1.f / 6);
  s = fused(s, x, 0.5f);
  return fused(s * x, x, x);
}

// sumOfWarp is the sum over the lanes, the same bits in each: a butterfly.
template <class T>
GK_DEVICE T sumOfWarp(T v) {
  for (int d = 16; d; d >>= 1) v += shuffleXor(v, d);
  return v;
}

// maxOfWarp is the largest over the lanes.
GK_DEVICE float maxOfWarp(float v) {
  for (int d = 16; d; d >>= 1) v = larger(v, shuffleXor(v, d));
  return v;
}

// aligned says whether rows of this stride in bytes all begin on a multiple of n.
GK_DEVICE bool aligned(const void *base, int64_t stride, int n) {
  return (((uint64_t)base | (uint64_t)stride) & (uint64_t)(n - 1)) == 0;
}

}  // namespace gk
