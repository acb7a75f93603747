// host.h: the primitives of kernels on the host, the twins of ../kernels/device.h,
// where their meaning is said. Here they also judge their use: what a GPU would leave
// undefined ends the launch with a sentence.
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <bit>
#include <source_location>
#include <utility>

#include "block.h"

#define GK_DEVICE [[maybe_unused]] static inline
#define GK_MEMBER inline
#define GK_UNROLL
#define GK_ROLLED
#define KERNEL(name, threads, ...)                                                               \
  static void kernel_##name(__VA_ARGS__);                                                        \
  [[maybe_unused]] static const bool entered_##name = gk::enter<&kernel_##name>(#name, threads); \
  static void kernel_##name(__VA_ARGS__)
#define KERNEL_BESIDE(name, threads, blocks, ...) KERNEL(name, threads, __VA_ARGS__)
// SHARED's place in the program stands for the array.
#define SHARED(type, name)                \
  static const char site_##name = 0;      \
  type &name = *static_cast<type *>(emulator::shared_memory(&site_##name, sizeof(type)))

namespace gk {

using At = std::source_location;

// enter makes a kernel known, with its parameters' sizes.
template <auto kernel, class... A, size_t... I>
void callWith(void (*)(A...), void **p, std::index_sequence<I...>) {
  kernel(*static_cast<A *>(p[I])...);
}
template <auto kernel>
struct Entered;
template <class... A, void (*kernel)(A...)>
struct Entered<kernel> {
  static void call(void **p) { callWith<kernel>(kernel, p, std::index_sequence_for<A...>{}); }
  static std::vector<int> sizes() { return {(int)sizeof(A)...}; }
};
template <auto kernel>
bool enter(const char *name, unsigned threads) {
  return emulator::kernels().insert({name, {name, threads, Entered<kernel>::call, Entered<kernel>::sizes()}}).second;
}

GK_DEVICE unsigned thread() { return emulator::fiber->thread; }
GK_DEVICE unsigned threads() { return emulator::block->size.x; }
GK_DEVICE unsigned blockX() { return emulator::block->index.x; }
GK_DEVICE unsigned blockY() { return emulator::block->index.y; }
GK_DEVICE unsigned blockZ() { return emulator::block->index.z; }
GK_DEVICE unsigned blocksX() { return emulator::block->grid.x; }

GK_DEVICE void barrier(At at = At::current()) { emulator::barrier(at.line()); }
GK_DEVICE void warpBarrier(At at = At::current()) { emulator::meet("warpBarrier", at.line(), nullptr, 0); }

GK_DEVICE float asFloat(uint32_t u) { return std::bit_cast<float>(u); }
GK_DEVICE uint32_t asBits(float f) { return std::bit_cast<uint32_t>(f); }

// exchanged is what a lane gave of its v.
template <class T>
static inline T exchanged(const char *operation, T v, unsigned from, At at) {
  T r;
  memcpy(&r, emulator::meet(operation, at.line(), &v, sizeof v) + from % 32 * emulator::Meeting::room, sizeof r);
  return r;
}
template <class T>
static inline T shuffle(T v, int from, At at = At::current()) {
  return exchanged("shuffle", v, (unsigned)from, at);
}
template <class T>
static inline T shuffleXor(T v, int d, At at = At::current()) {
  return exchanged("shuffleXor", v, (thread() & 31) ^ (unsigned)d, at);
}
GK_DEVICE uint32_t votes(bool yes, At at = At::current()) {
  const unsigned char *given = emulator::meet("votes", at.line(), &yes, sizeof yes);
  uint32_t r = 0;
  for (int i = 0; i < 32; i++) r |= (uint32_t)given[i * emulator::Meeting::room] << i;
  return r;
}

GK_DEVICE int addAtomic(int *p, int v) { return std::exchange(*p, *p + v); }
GK_DEVICE float addAtomic(float *p, float v) { return std::exchange(*p, *p + v); }
GK_DEVICE int minAtomic(int *p, int v) { return std::exchange(*p, v < *p ? v : *p); }
GK_DEVICE uint32_t swapAtomic(uint32_t *p, uint32_t expected, uint32_t v) {
  return std::exchange(*p, *p == expected ? v : *p);
}

// at is an address that must be a multiple of this.
template <class T>
static inline T *at(T *p, size_t n, const char *what) {
  if ((uintptr_t)p % n) emulator::fail("a %s of %zu bytes is misaligned", what, n);
  return p;
}
template <class T, class From>
static inline T loaded(const From *p) {
  T r;
  memcpy(&r, at(p, sizeof(T), "load"), sizeof r);
  return r;
}
template <class To, class T>
static inline void stored(To *p, T v) {
  memcpy(at(p, sizeof(T), "store"), &v, sizeof v);
}
GK_DEVICE Float4 load4(const float *p) { return loaded<Float4>(p); }
GK_DEVICE UInt2 load4(const uint16_t *p) { return loaded<UInt2>(p); }
GK_DEVICE Float4 loadMutable4(const float *p) { return loaded<Float4>(p); }
GK_DEVICE UInt2 loadMutable4(const uint16_t *p) { return loaded<UInt2>(p); }
GK_DEVICE void store4(float *p, Float4 v) { stored(p, v); }
GK_DEVICE void store4(uint16_t *p, UInt2 v) { stored(p, v); }
GK_DEVICE void store2(float *p, Float2 v) { stored(p, v); }

// A copy lands when it is issued, or not before it is waited for: a GPU may do either.
static inline void copy(void *to, const void *from, int bytes, int size) {
  emulator::Copy c{at(to, (size_t)size, "copy to"), at(from, (size_t)size, "copy from"), bytes, size};
  if (bytes < 0 || bytes > size) emulator::fail("a copy of %d bytes of %d", bytes, size);
  if (emulator::block->eager_copies) return emulator::land(c);
  emulator::fiber->open.push_back(c);
}
GK_DEVICE void copy16(void *to, const void *from, int bytes) { copy(to, from, bytes, 16); }
GK_DEVICE void copy16(void *to, const void *from) { copy(to, from, 16, 16); }
GK_DEVICE void copy4(void *to, const void *from, int bytes) { copy(to, from, bytes, 4); }
GK_DEVICE void copyCommit() {
  auto &f = *emulator::fiber;
  f.groups.push_back(std::move(f.open));
  f.open.clear();
}
template <int N>
GK_DEVICE void copyWait() {
  auto &groups = emulator::fiber->groups;
  size_t landed = groups.size() > N ? groups.size() - N : 0;
  for (size_t i = 0; i < landed; i++)
    for (const auto &c : groups[i]) emulator::land(c);
  groups.erase(groups.begin(), groups.begin() + (ptrdiff_t)landed);
}

// tf32's carry may run into the exponent, as it should.
GK_DEVICE uint32_t tf32(float f) {
  uint32_t u = asBits(f);
  return f != f ? 0x7fffe000u : (u + 0x1000u) & 0xffffe000u;
}

GK_DEVICE uint32_t uncut(float f) { return f - f != 0 ? asBits(f) : asBits(f) + 0x1000u; }

// Of a fragment's words, where(lane) is what the lane holds.
struct Fragments {
  uint32_t a[4], b[2];
};
static_assert(sizeof(Fragments) <= emulator::Meeting::room);

static inline uint32_t upper(float f) {
  uint32_t u = asBits(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (u + 0x7fffu + (u >> 16 & 1)) >> 16;
}
GK_DEVICE uint32_t halves(float low, float high) { return upper(low) | upper(high) << 16; }

// multiplied is d += a*b, k columns of a, `packed` of which a word holds. The sum is
// taken whole and rounded once; the tensor cores' own rounding is not known.
template <class Element>
static inline void multiplied(const char *operation, float d[4], const uint32_t a[4], const uint32_t b[2], int k, int packed,
                              Element element, At at) {
  Fragments mine;
  memcpy(mine.a, a, sizeof mine.a);
  memcpy(mine.b, b, sizeof mine.b);
  const unsigned char *given = emulator::meet(operation, at.line(), &mine, sizeof mine);
  auto of = [&](int l) { return reinterpret_cast<const Fragments *>(given + l * emulator::Meeting::room); };
  int g = (int)(thread() & 31) / 4, q = (int)thread() % 4;
  for (int i = 0; i < 4; i++) {
    int row = g + i / 2 * 8, col = 2 * q + i % 2;
    double sum = 0;
    for (int j = 0; j < k; j++) {
      int word = j / packed, half = j % packed;  // 4 words to a group of lanes
      uint32_t x = of(row % 8 * 4 + word % 4)->a[row / 8 + 2 * (word / 4)];
      uint32_t y = of(col * 4 + word % 4)->b[word / 4];
      sum += (double)element(x, half) * (double)element(y, half);
    }
    d[i] = (float)(d[i] + sum);
  }
}
GK_DEVICE void mmaTF32(float d[4], const uint32_t a[4], const uint32_t b[2], At at = At::current()) {
  multiplied("mmaTF32", d, a, b, 8, 1, [](uint32_t u, int) { return asFloat(u & 0xffffe000u); }, at);
}
GK_DEVICE void mmaBF16(float d[4], const uint32_t a[4], const uint32_t b[2], At at = At::current()) {
  multiplied("mmaBF16", d, a, b, 16, 2, [](uint32_t u, int half) { return asFloat(half ? u & 0xffff0000u : u << 16); }, at);
}

// flushed is what .ftz leaves of a result.
static inline float flushed(float x) { return fabsf(x) < 1.17549435e-38f ? copysignf(0.f, x) : x; }
GK_DEVICE float exp2Approx(float x) { return flushed(exp2f(flushed(x))); }
GK_DEVICE float log2Approx(float x) { return log2f(flushed(x)); }
GK_DEVICE float rsqrtApprox(float x) { return 1.f / sqrtf(flushed(x)); }
GK_DEVICE float root(float x) { return sqrtf(x); }
GK_DEVICE float fused(float a, float b, float c) { return (float)((double)a * b + c); }
GK_DEVICE float larger(float a, float b) { return b > a ? b : a; }
GK_DEVICE uint64_t multiplyHigh(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }

}  // namespace gk
