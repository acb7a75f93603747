// device.h: the primitives on a GPU. Clang has no toolkit here, so that what CUDA's
// headers would declare comes from its built-ins or from inline PTX, which clang
// passes on unread: ptxas judges it (make ptxas). Each has its twin in
// ../emulator/host.h.
#pragma once

#if defined(__clang__)
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define GK_BOUNDS(...) __attribute__((launch_bounds(__VA_ARGS__)))
#else
#include <stdint.h>
#define GK_BOUNDS(...) __launch_bounds__(__VA_ARGS__)
#endif

// GK_DEVICE is a function of kernels, GK_MEMBER one of a struct. KERNEL begins a kernel for blocks of at most
// this many threads, KERNEL_BESIDE one of which so many blocks share a multiprocessor. SHARED is memory of the block, an array type's name and its own.
// GK_UNROLL and GK_ROLLED say what becomes of a loop.
#define GK_DEVICE static __device__ inline __attribute__((always_inline))
#define GK_MEMBER __device__ inline __attribute__((always_inline))
#define KERNEL(name, threads, ...) extern "C" __global__ void GK_BOUNDS(threads) name(__VA_ARGS__)
#define KERNEL_BESIDE(name, threads, blocks, ...) extern "C" __global__ void GK_BOUNDS(threads, blocks) name(__VA_ARGS__)
#define GK_UNROLL _Pragma("unroll")
#define GK_ROLLED _Pragma("unroll 1")
#define SHARED(type, name) __shared__ __attribute__((aligned(16))) type name

namespace gk {

// The thread in its block, the block in its grid.
#if defined(__clang__)
GK_DEVICE unsigned thread() { return __nvvm_read_ptx_sreg_tid_x(); }
GK_DEVICE unsigned threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
GK_DEVICE unsigned blockX() { return __nvvm_read_ptx_sreg_ctaid_x(); }
GK_DEVICE unsigned blockY() { return __nvvm_read_ptx_sreg_ctaid_y(); }
GK_DEVICE unsigned blockZ() { return __nvvm_read_ptx_sreg_ctaid_z(); }
GK_DEVICE unsigned blocksX() { return __nvvm_read_ptx_sreg_nctaid_x(); }
#else
GK_DEVICE unsigned thread() { return threadIdx.x; }
GK_DEVICE unsigned threads() { return blockDim.x; }
GK_DEVICE unsigned blockX() { return blockIdx.x; }
GK_DEVICE unsigned blockY() { return blockIdx.y; }
GK_DEVICE unsigned blockZ() { return blockIdx.z; }
GK_DEVICE unsigned blocksX() { return gridDim.x; }
#endif

// barrier waits for all threads of the block, warpBarrier for those of the warp.
// Both make what was written before visible to those who waited.
GK_DEVICE void barrier() { asm volatile("barrier.sync 0;" ::: "memory"); }
GK_DEVICE void warpBarrier() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

GK_DEVICE float asFloat(uint32_t u) { return __builtin_bit_cast(float, u); }
GK_DEVICE uint32_t asBits(float f) { return __builtin_bit_cast(uint32_t, f); }

// shuffle is what this lane has, shuffleXor what the lane across does.
GK_DEVICE uint32_t shuffle(uint32_t v, int from) {
  uint32_t r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(v), "r"(from));
  return r;
}
GK_DEVICE uint32_t shuffleXor(uint32_t v, int d) {
  uint32_t r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(v), "r"(d));
  return r;
}
GK_DEVICE int shuffle(int v, int from) { return (int)shuffle((uint32_t)v, from); }
GK_DEVICE int shuffleXor(int v, int d) { return (int)shuffleXor((uint32_t)v, d); }
GK_DEVICE float shuffle(float v, int from) { return asFloat(shuffle(asBits(v), from)); }
GK_DEVICE float shuffleXor(float v, int d) { return asFloat(shuffleXor(asBits(v), d)); }
GK_DEVICE double shuffleXor(double v, int d) {
  uint64_t u = __builtin_bit_cast(uint64_t, v);
  uint64_t r = shuffleXor((uint32_t)u, d) | (uint64_t)shuffleXor((uint32_t)(u >> 32), d) << 32;
  return __builtin_bit_cast(double, r);
}

// votes has a bit for each lane that says yes.
GK_DEVICE uint32_t votes(bool yes) {
  uint32_t r;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(r) : "r"((uint32_t)yes));
  return r;
}

// Atomics of global memory return what was there.
GK_DEVICE int addAtomic(int *p, int v) {
  int r;
  asm volatile("atom.global.add.s32 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(v) : "memory");
  return r;
}
GK_DEVICE float addAtomic(float *p, float v) {
  float r;
  asm volatile("atom.global.add.f32 %0, [%1], %2;" : "=f"(r) : "l"(p), "f"(v) : "memory");
  return r;
}
GK_DEVICE int minAtomic(int *p, int v) {
  int r;
  asm volatile("atom.global.min.s32 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(v) : "memory");
  return r;
}
// swapAtomic puts v where expected is.
GK_DEVICE uint32_t swapAtomic(uint32_t *p, uint32_t expected, uint32_t v) {
  uint32_t r;
  asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(r) : "l"(p), "r"(expected), "r"(v) : "memory");
  return r;
}

// Loads of 16 and 8 bytes of what nobody writes during the kernel, and stores. The
// address is a multiple of that.
GK_DEVICE Float4 load4(const float *p) {
  Float4 r;
  asm("ld.global.nc.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(p));
  return r;
}
GK_DEVICE UInt2 load4(const uint16_t *p) {
  UInt2 r;
  asm("ld.global.nc.v2.u32 {%0,%1}, [%2];" : "=r"(r.x), "=r"(r.y) : "l"(p));
  return r;
}
GK_DEVICE void store4(float *p, Float4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
GK_DEVICE void store4(uint16_t *p, UInt2 v) {
  asm volatile("st.global.v2.u32 [%0], {%1,%2};" ::"l"(p), "r"(v.x), "r"(v.y) : "memory");
}
GK_DEVICE void store2(float *p, Float2 v) {
  asm volatile("st.global.v2.f32 [%0], {%1,%2};" ::"l"(p), "f"(v.x), "f"(v.y) : "memory");
}
// loadMutable4 is load4 of what the kernel itself writes.
GK_DEVICE Float4 loadMutable4(const float *p) {
  Float4 r;
  asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(p) : "memory");
  return r;
}
GK_DEVICE UInt2 loadMutable4(const uint16_t *p) {
  UInt2 r;
  asm volatile("ld.global.v2.u32 {%0,%1}, [%2];" : "=r"(r.x), "=r"(r.y) : "l"(p) : "memory");
  return r;
}

GK_DEVICE unsigned sharedAddress(const void *p) {
  unsigned a;
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(a) : "l"(p));
  return a;
}
// copy16 begins to copy 16 bytes into shared memory, copy4 4; of those, what is not
// in `bytes`, if given, becomes 0. They belong to the group that copyCommit ends, and have
// landed, for this thread, once copyWait<N> left at most N groups under way.
GK_DEVICE void copy16(void *to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(sharedAddress(to)), "l"(from), "r"(bytes) : "memory");
}
GK_DEVICE void copy16(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(sharedAddress(to)), "l"(from) : "memory");
}
GK_DEVICE void copy4(void *to, const void *from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(sharedAddress(to)), "l"(from), "r"(bytes) : "memory");
}
GK_DEVICE void copyCommit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
GK_DEVICE void copyWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// tf32 rounds to 10 bits of fraction, ties away from 0.
GK_DEVICE uint32_t tf32(float f) {
  uint32_t u;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(f));
  return u;
}
// uncut is f so that what mmaTF32 cuts it to, which ignores the lower 13 bits, is tf32(f).
// It goes into another register than f: tf32 would not, and what 16 bytes of shared
// memory were loaded into would be moved for each product.
GK_DEVICE uint32_t uncut(float f) {
  uint32_t u;
  asm("{ .reg .f32 a; .reg .u32 m; abs.f32 a, %1; set.lt.u32.f32 m, a, 0f7F800000; mad.lo.u32 %0, m, -4096, %2; }" : "=r"(u) : "f"(f), "r"(asBits(f)));
  return u;
}
// halves rounds two floats to bf16, to even, in one word, the first in its lower half.
GK_DEVICE uint32_t halves(float low, float high) {
  uint32_t u;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(high), "f"(low));
  return u;
}
// mmaTF32 is d += a*b of a warp, a 16 x 8 and b 8 x 8. With g = lane/4, q = lane%4:
// a = (g,q) (g+8,q) (g,q+4) (g+8,q+4), b = (q,g) (q+4,g),
// d = (g,2q) (g,2q+1) (g+8,2q) (g+8,2q+1).
GK_DEVICE void mmaTF32(float d[4], const uint32_t a[4], const uint32_t b[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// mmaBF16 is the same for a 16 x 16 and b 16 x 8 of bf16, two a word, the lower half
// first: a = (g,2q..) (g+8,2q..) (g,2q+8..) (g+8,2q+8..), b = (2q..,g) (2q+8..,g).
GK_DEVICE void mmaBF16(float d[4], const uint32_t a[4], const uint32_t b[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// 2^x, log2 x and 1/sqrt x, to about 22 bits; results below the normal ones are 0.
GK_DEVICE float exp2Approx(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
GK_DEVICE float log2Approx(float x) {
  float r;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
GK_DEVICE float rsqrtApprox(float x) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
// root is the correctly rounded square root.
GK_DEVICE float root(float x) {
  float r;
  asm("sqrt.rn.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
// fused is a*b + c, rounded once.
GK_DEVICE float fused(float a, float b, float c) {
  float r;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));
  return r;
}
// larger is b where it is above a, else a: a NaN is larger than nothing.
GK_DEVICE float larger(float a, float b) { return b > a ? b : a; }

// multiplyHigh is the upper 64 of the 128 bits of a product.
GK_DEVICE uint64_t multiplyHigh(uint64_t a, uint64_t b) {
  uint64_t r;
  asm("mul.hi.u64 %0, %1, %2;" : "=l"(r) : "l"(a), "l"(b));
  return r;
}

}  // namespace gk
