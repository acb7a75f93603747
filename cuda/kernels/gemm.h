// gemm.h: products of dense matrices, c = e(a*b), in a skeleton that the ways of
// multiplying (gemm_tf32.cu, gemm_bf16.cu, gemm_f32.cu) share.
//
// A block of 256 threads makes 128 x N of c, where N is 128 or 64. It goes along k in
// steps of 16, of which copies of the next two are under way while it multiplies one.
// The grid is (tiles of m * tiles of n, 1, parts of k): tiles of one row follow each
// other, so that a is read from memory once. Long k and few tiles: a block has `each`
// of k, a multiple of 32, and writes its sum to partial, which gemm_sum adds up in
// order.
//
// Traffic: a n/N times, b m/128 times, of which the second-level cache serves most;
// c once. Edges need not be multiples of anything, nor rows aligned: those that are
// go 16 bytes at a time.
#pragma once
#include "rows.h"

namespace gk {

constexpr int tileM = 128, stepK = 16, stages = 3, gemmThreads = 256;

// A Panel is a step of one operand in shared memory: Rows of a, or columns of b, and
// stepK elements of each. Deep says that k runs along memory. Chunks of four elements
// change places with each other so that the lanes of a fragment are in different banks
// and nothing is padded: the stages have all the memory that there is. Together is how
// many elements along k a lane takes next to each other.
template <int Rows, bool Deep, int Together>
struct Panel {
  static constexpr int chunk = 4;
  float element[Rows * stepK];

  GK_MEMBER static int place(unsigned row, unsigned depth) {
    return (int)(Deep ? row * stepK + ((depth / 4 ^ row / 2 % 4) * 4 | depth % 4) : depth * Rows + (row ^ depth / Together % 4 * 8));
  }
  GK_MEMBER float at(int row, int depth) const { return element[place((unsigned)row, (unsigned)depth)]; }
};

// A Feed is what one thread copies of an operand, step after step: the same chunk of
// each of its lines. A line is a row, or a k if k does not run along memory.
template <int Rows, bool Deep, int Together>
struct Feed {
  using To = Panel<Rows, Deep, Together>;
  static constexpr int across = (Deep ? stepK : Rows) / To::chunk;  // chunks in a line
  static constexpr int apart = gemmThreads / across, lines = Rows * stepK / To::chunk / gemmThreads;

  const float *base, *from;  // from: the first line's chunk of the next step
  int64_t ld;
  int begin;         // where its first chunk goes
  int room;          // how much of k is left from there on
  int width[lines];  // elements of the chunks that the operand has
  bool fast;

  // It feeds the rows from `first` on, of which there are `rows` in all, and k from
  // `depth` to `end`.
  GK_MEMBER Feed(const float *base, int64_t ld, int64_t first, int rows, int depth, int end)
      : base(base), ld(ld), fast(aligned(base, ld * (int)sizeof(float), 16)) {
    int line = (int)(thread() / across), at = (int)(thread() % across) * To::chunk;
    begin = To::place((unsigned)(Deep ? line : at), (unsigned)(Deep ? at : line));
    room = end - depth - (Deep ? at : line);
    from = base + (Deep ? (first + line) * ld + depth + at : (int64_t)(depth + line) * ld + first + at);
    GK_UNROLL for (int i = 0; i < lines; i++) {
      int64_t there = Deep ? (first + line + i * apart < rows ? To::chunk : 0) : rows - first - at;
      width[i] = (int)(there < 0 ? 0 : there > To::chunk ? To::chunk : there);
    }
  }

  // next begins to copy the next step. What the operand has not becomes 0.
  GK_MEMBER void next(To &to) {
    GK_UNROLL for (int i = 0; i < lines; i++) {
      int left = Deep ? room : room - i * apart;
      int there = Deep ? (left < width[i] ? left : width[i]) : left > 0 ? width[i] : 0;
      if (there < 0) there = 0;
      copyChunk(to.element + begin + i * apart * (Deep ? stepK : Rows), from + i * apart * ld, there);
    }
    from += Deep ? (int64_t)stepK : stepK * ld;
    room -= stepK;
  }

 private:
  GK_MEMBER void copyChunk(float *to, const float *x, int there) const {
    if (fast) return copy16(to, there ? x : base, there * 4);
    GK_ROLLED for (int j = 0; j < To::chunk; j++) copy4(to + j, j < there ? x + j : base, j < there ? 4 : 0);
  }
};

template <class Way, bool DeepA, bool DeepB>
struct Stage {
  Panel<tileM, DeepA, Way::together> a;
  Panel<Way::tileN, DeepB, Way::together> b;
};

// Fragments16x8 is what the tensor cores' ways share: 8 warps, 2 by 4 with 64 x 32 of a
// wide tile each, or 4 by 2 with 32 x 32 of a narrow one, in products of 16 x 8.
template <int N>
struct Fragments16x8 {
  static constexpr int tileN = N, down = N == 128 ? 2 : 4, high = tileM / down / 16, broad = 4;
  float sum[high][broad][4] = {};

  static constexpr int rows = high * 2, pairs = broad;
  GK_MEMBER static int top() { return (int)(warp() % down) * high * 16; }
  GK_MEMBER static int left() { return (int)(warp() / down) * broad * 8; }
  // The n-th row of the thread, and the p-th two columns of it.
  GK_MEMBER static int row(int n) { return top() + n / 2 * 16 + n % 2 * 8 + (int)(lane() / 4); }
  GK_MEMBER static int column(int p) { return left() + p * 8 + (int)(lane() % 4) * 2; }
  GK_MEMBER float value(int n, int p, int i) const { return sum[n / 2][p][n % 2 * 2 + i]; }
};

// Out is half of the block's result in shared memory, where the stages were. What pads
// a row keeps the lanes of a fragment in different banks.
constexpr int halfM = tileM / 2;
template <int N>
using Out = float[halfM * (N + 8)];

// storeTile writes what the block made, half after half, a warp a row: whole lines, and
// one key a row.
template <class Way>
GK_DEVICE void storeTile(const Way &way, float *out, float *c, int64_t ldc, int64_t top, int64_t left, int m, int n, bool add,
                         const Epilogue &e) {
  constexpr int N = Way::tileN, stride = N + 8, each = N / 32;  // each: columns of a lane
  bool fast = each == 4 && wide(c, ldc);
  GK_ROLLED for (int half = 0; half < tileM; half += halfM) {
    barrier();  // all are done with what was there
    GK_UNROLL for (int i = 0; i < Way::rows; i++) {
      int row = Way::row(i) - half;
      if (row < 0 || row >= halfM) continue;
      GK_UNROLL for (int p = 0; p < Way::pairs; p++)
        GK_UNROLL for (int j = 0; j < 2; j++) out[row * stride + Way::column(p) + j] = way.value(i, p, j);
    }
    barrier();
    GK_ROLLED for (int i = (int)warp(); i < halfM && top + half + i < m; i += warpsOfBlock) {
      int64_t row = top + half + i;
      uint64_t key = rowKey(e, row);
      int at = (int)lane() * each;
      const float *from = out + i * stride + at;
      float *to = c + row * ldc + left + at, v[4] = {};
      int there = (int)(n - left - at);  // columns from here on
      if (fast && there >= 4) {
        if (add) {
          Float4 before = loadMutable4(to);
          v[0] = before.x, v[1] = before.y, v[2] = before.z, v[3] = before.w;
        }
        GK_UNROLL for (int j = 0; j < each; j++) v[j] = finish(e, from[j] + v[j], key, (int)left + at + j);
        store4(to, Float4{v[0], v[1], v[2], v[3]});
        continue;
      }
      GK_UNROLL for (int j = 0; j < each; j++)
        if (j < there) to[j] = finish(e, from[j] + (add ? to[j] : 0.f), key, (int)left + at + j);
    }
  }
}

// product is the kernel: Way says how a step is multiplied and who holds what.
template <class Way, bool DeepA, bool DeepB>
GK_DEVICE void product(Stage<Way, DeepA, DeepB> *stage, float *c, int64_t ldc, const float *a, int64_t lda, const float *b,
                       int64_t ldb, int m, int n, int k, int each, float *partial, bool add, const Epilogue &e) {
  constexpr int N = Way::tileN;
  int across = (n + N - 1) / N;
  int64_t top = (int64_t)(blockX() / across) * tileM, left = (int64_t)(blockX() % across) * N;
  int begin = (int)blockZ() * each, end = k - begin > each ? begin + each : k;
  int steps = (end - begin + stepK - 1) / stepK;
  Feed<tileM, DeepA, Way::together> feedA(a, lda, top, m, begin, end);
  Feed<N, DeepB, Way::together> feedB(b, ldb, left, n, begin, end);
  auto fill = [&](int i, int to) {
    if (i < steps) {
      feedA.next(stage[to].a);
      feedB.next(stage[to].b);
    }
    copyCommit();
  };

  Way way;
  GK_ROLLED for (int i = 0; i < stages - 1; i++) fill(i, i);
  int now = 0, ahead = stages - 1;  // the stage of step i, and the one before it
  GK_ROLLED for (int i = 0; i < steps; i++) {
    copyWait<stages - 2>();
    barrier();  // all have copied step i, and are done with the stage of step i-1
    fill(i + stages - 1, ahead);
    way.multiply(stage[now].a, stage[now].b);
    ahead = now;
    now = now == stages - 1 ? 0 : now + 1;
  }
  static_assert(sizeof(Out<N>) <= sizeof(Stage<Way, DeepA, DeepB>[stages]));
  Epilogue after = e;
  if (partial) {
    c = partial + (int64_t)blockZ() * m * n, ldc = n, add = false;
    after.bias = nullptr, after.activation = Linear, after.threshold = 0, after.scale = 1.f;
  }
  storeTile(way, (float *)stage, c, ldc, top, left, m, n, add, after);
}

}  // namespace gk

// GEMM makes the kernels of one way: nn is a*b, nt a times transposed b, tn transposed
// a times b. partial is null where k is in one part. `beside` blocks share a multiprocessor.
#define GEMM(name, beside, Way, DeepA, DeepB)                                                                                       \
  KERNEL_BESIDE(name, 256, beside, float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int m, int n,   \
                int k, int each, float *partial, int add, EPILOGUE) {                                                               \
    using Stages = gk::Stage<Way, DeepA, DeepB>[gk::stages];                                                                        \
    SHARED(Stages, stage);                                                                                                          \
    gk::product<Way, DeepA, DeepB>(stage, c, ldc, a, lda, b, ldb, m, n, k, each, partial, add != 0, EPILOGUE_GIVEN);                \
  }
