// gemm.h: products of dense matrices, c = e(a*b), in a skeleton that the ways of
// multiplying (gemm_tf32.cu, gemm_bf16.cu, gemm_f32.cu) share.
//
// A block of 256 threads makes 128 x 64 of c. It goes along k in steps of 64 bytes,
// of which copies of the next two are under way while it multiplies one. The grid is
// (tiles of m * tiles of n, 1, parts of k): tiles of one row follow each other, so
// that a is read from memory once. Long k and few tiles: a block has `each` of k, a
// multiple of 32, and writes its sum to partial, which gemm_sum adds up in order.
//
// Traffic: a n/64 times, b m/128 times, of which the second-level cache serves most;
// c once. Edges need not be multiples of anything, nor rows aligned: those that are
// go 16 bytes at a time.
#pragma once
#include "rows.h"

namespace gk {

constexpr int tileM = 128, tileN = 64, stages = 3, gemmThreads = 256;

// A Panel is a step of one operand in shared memory: Rows of a, or columns of b, and
// k elements of each. Deep says that k runs along memory. What pads a row keeps the
// lanes of a fragment in different banks.
template <class T, int Rows, bool Deep>
struct Panel {
  static constexpr int k = 64 / sizeof(T), chunk = 16 / sizeof(T);
  static constexpr int stride = Deep ? k + chunk : Rows + 8;
  T element[(Deep ? Rows : k) * stride];

  GK_MEMBER static int index(int row, int depth) { return Deep ? row * stride + depth : depth * stride + row; }
  GK_MEMBER T at(int row, int depth) const { return element[index(row, depth)]; }

  // fill begins to copy the step at `depth` of the operand's rows from `first` on.
  // What lies beyond `rows` or `end` becomes 0.
  GK_MEMBER void fill(const T *from, int64_t ld, bool fast, int64_t first, int rows, int depth, int end) {
    constexpr int across = Deep ? k / chunk : Rows / chunk;  // chunks in a line
    GK_ROLLED for (int i = 0; i < Rows * 4 / gemmThreads; i++) {
      int n = i * gemmThreads + (int)thread(), line = n / across, at = n % across * chunk;
      int64_t y = Deep ? first + line : depth + line, x = Deep ? depth + at : first + at;
      int there = (int)(Deep ? end - x : rows - x);  // elements of the chunk
      if (y >= (Deep ? rows : end) || there < 0) there = 0;
      if (there > chunk) there = chunk;
      copyChunk(element + line * stride + at, from, y * ld + x, there, fast);
    }
  }

 private:
  GK_MEMBER static void copyChunk(float *to, const float *base, int64_t at, int there, bool fast) {
    if (fast) return copy16(to, there ? base + at : base, there * 4);
    for (int j = 0; j < chunk; j++) copy4(to + j, j < there ? base + at + j : base, j < there ? 4 : 0);
  }
};

template <class T, bool DeepA, bool DeepB>
struct Stage {
  Panel<T, tileM, DeepA> a;
  Panel<T, tileN, DeepB> b;
};

// Fragments16x8 is what the tensor cores' ways share: 8 warps, 4 by 2, with 32 x 32 of
// the tile each, in 2 x 4 products of 16 x 8.
struct Fragments16x8 {
  float sum[2][4][4] = {};

  static constexpr int rows = 4, pairs = 4;
  GK_MEMBER static int top() { return (int)(warp() % 4) * 32; }
  GK_MEMBER static int left() { return (int)(warp() / 4) * 32; }
  // The n-th row of the thread, and the p-th two columns of it.
  GK_MEMBER static int row(int n) { return top() + n / 2 * 16 + n % 2 * 8 + (int)lane() / 4; }
  GK_MEMBER static int column(int p) { return left() + p * 8 + (int)lane() % 4 * 2; }
  GK_MEMBER float value(int n, int p, int i) const { return sum[n / 2][p][n % 2 * 2 + i]; }
};

// Out is the block's result in shared memory, where the stages were.
constexpr int outStride = tileN + 4;
using Out = float[tileM * outStride];

// storeTile writes what the block made, a warp a row: whole lines, and one key a row.
template <class Way>
GK_DEVICE void storeTile(const Way &way, float *out, float *c, int64_t ldc, int64_t top, int64_t left, int m, int n, bool add,
                         const Epilogue &e) {
  barrier();  // all are done with the stages
  GK_UNROLL for (int i = 0; i < Way::rows; i++)
    GK_UNROLL for (int p = 0; p < Way::pairs; p++)
      GK_UNROLL for (int j = 0; j < 2; j++) out[Way::row(i) * outStride + Way::column(p) + j] = way.value(i, p, j);
  barrier();
  GK_ROLLED for (int i = (int)warp(); i < tileM && top + i < m; i += warpsOfBlock) {
    uint64_t k = rowKey(e, top + i);
    GK_ROLLED for (int j = (int)lane(); j < tileN && left + j < n; j += 32) {
      float *to = c + (top + i) * ldc + left + j;
      *to = finish(e, out[i * outStride + j] + (add ? *to : 0.f), k, (int)left + j);
    }
  }
}

// product is the kernel: Way says how a step is multiplied and who holds what.
template <class Way, class T, bool DeepA, bool DeepB>
GK_DEVICE void product(Stage<T, DeepA, DeepB> *stage, float *c, int64_t ldc, const T *a, int64_t lda, const T *b, int64_t ldb, int m,
                       int n, int k, int each, float *partial, bool add, const Epilogue &e) {
  constexpr int step = Panel<T, tileM, DeepA>::k;
  int across = (n + tileN - 1) / tileN;
  int64_t top = (int64_t)(blockX() / across) * tileM, left = (int64_t)(blockX() % across) * tileN;
  int begin = (int)blockZ() * each, end = k - begin > each ? begin + each : k;
  int steps = (end - begin + step - 1) / step;
  bool fastA = aligned(a, lda * (int)sizeof(T), 16), fastB = aligned(b, ldb * (int)sizeof(T), 16);
  auto fill = [&](int i) {
    if (i < steps) {
      stage[i % stages].a.fill(a, lda, fastA, top, m, begin + i * step, end);
      stage[i % stages].b.fill(b, ldb, fastB, left, n, begin + i * step, end);
    }
    copyCommit();
  };

  Way way;
  GK_ROLLED for (int i = 0; i < stages - 1; i++) fill(i);
  GK_ROLLED for (int i = 0; i < steps; i++) {
    copyWait<stages - 2>();
    barrier();  // all have copied step i, and are done with the stage of step i-1
    fill(i + stages - 1);
    way.multiply(stage[i % stages].a, stage[i % stages].b);
  }
  static_assert(sizeof(Out) <= sizeof(Stage<T, DeepA, DeepB>[stages]));
  Epilogue after = e;
  if (partial) {
    c = partial + (int64_t)blockZ() * m * n, ldc = n, add = false;
    after.bias = nullptr, after.activation = Linear, after.threshold = 0, after.scale = 1.f;
  }
  storeTile(way, (float *)stage, c, ldc, top, left, m, n, add, after);
}

}  // namespace gk

// GEMM makes the kernels of one way: nn is a*b, nt a times transposed b, tn transposed
// a times b. partial is null where k is in one part.
#define GEMM(name, Way, T, DeepA, DeepB)                                                                                            \
  KERNEL(name, 256, float *c, int64_t ldc, const T *a, int64_t lda, const T *b, int64_t ldb, int m, int n, int k, int each,         \
         float *partial, int add, EPILOGUE) {                                                                                       \
    using Stages = gk::Stage<T, DeepA, DeepB>[gk::stages];                                                                          \
    SHARED(Stages, stage);                                                                                                          \
    gk::product<Way>(stage, c, ldc, a, lda, b, ldb, m, n, k, each, partial, add != 0, EPILOGUE_GIVEN);                              \
  }
