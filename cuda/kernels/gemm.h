// gemm.h: products of dense matrices, c = e(a*b), in a skeleton that the ways of
// multiplying (gemm_tf32.cu, gemm_bf16.cu, gemm_f32.cu) share.
//
// A block of 128 threads, or of 256 that have no tensor cores, makes 128 x N of c, where
// N is 128 or 64. It goes along k in steps of 16, and copies of the next two or three are
// under way while it multiplies one. The grid is (tiles of m * tiles of n, 1, parts of k): tiles of one row follow each
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

constexpr int tileM = 128, stepK = 16;

// A Panel is a step of one operand in shared memory: Lines rows of a, or columns of b,
// and stepK elements of each. Deep says that k runs along memory. A lane takes 16 bytes
// at a time, four elements along memory. These chunks change places with each other so
// that lanes that are served together are in different banks; nothing is padded.
template <int Lines, bool Deep>
struct Panel {
  static constexpr int chunk = 4;
  float element[Lines * stepK];

  GK_MEMBER static int place(unsigned line, unsigned depth) {
    if (Deep) return (int)(line / 2 * 32 + ((line ^ line / 4) & 1) * 16 + depth);
    return (int)(depth * Lines + (line ^ depth / 4 % 4 * 8));
  }
  GK_MEMBER float at(int line, int depth) const { return element[place((unsigned)line, (unsigned)depth)]; }

  // four are, of the four lines from `line` on, the elements of the four depths from
  // `depth` on. Both are multiples of four.
  GK_MEMBER void four(float v[4][4], int line, int depth) const {
    GK_UNROLL for (int i = 0; i < 4; i++) {
      Float4 f = Deep ? load(line + i, depth) : load(line, depth + i);
      float along[4] = {f.x, f.y, f.z, f.w};
      GK_UNROLL for (int j = 0; j < 4; j++) {
        if (Deep) v[i][j] = along[j];
        else v[j][i] = along[j];
      }
    }
  }

 private:
  GK_MEMBER Float4 load(int line, int depth) const { return *(const Float4 *)(element + place((unsigned)line, (unsigned)depth)); }
};

// A Feed is what one of Threads copies of an operand, step after step: the same chunk of
// each of its rows in memory, which are lines or, if k does not run along memory, depths.
template <int Threads, int Lines, bool Deep>
struct Feed {
  using To = Panel<Lines, Deep>;
  static constexpr int across = (Deep ? stepK : Lines) / To::chunk;  // chunks in a row
  static constexpr int apart = Threads / across, rows = Lines * stepK / To::chunk / Threads;

  const float *base, *from[rows];  // from: its chunks of the first step
  int64_t ld, step, next = 0;      // step: from one to the next, which is at next
  int row, at, left, lines;        // left: depths from the next step on; lines from the first on
  bool aligned16, fast;

  // It feeds the lines from `first` on, of which there are `count` in all, and k from
  // `depth` to `end`.
  GK_MEMBER Feed(const float *base, int64_t ld, int64_t first, int count, int depth, int end)
      : base(base), ld(ld), step(Deep ? (int64_t)stepK : stepK * ld), row((int)(thread() / across)), at((int)(thread() % across) * To::chunk),
        left(end - depth), lines((int)(count - first)), aligned16(aligned(base, ld * (int)sizeof(float), 16)) {
    fast = aligned16 && (Deep || count % To::chunk == 0);
    // A line beyond the last is the last: what it makes is not stored.
    int column = Deep || at < lines ? at : lines - To::chunk;
    GK_UNROLL for (int i = 0; i < rows; i++) {
      int nth = row + i * apart;
      if (Deep && nth >= lines) nth = lines - 1;
      from[i] = base + (Deep ? (first + nth) * ld + depth + at : (int64_t)(depth + nth) * ld + first + column);
    }
  }

  // copy begins to copy the next step. What k has not becomes 0.
  GK_MEMBER void copy(To &to) {
    if (fast && left >= stepK)
      GK_UNROLL for (int i = 0; i < rows; i++) copy16(to.element + place(row + i * apart), from[i] + next);
    else
      GK_ROLLED for (int i = 0; i < rows; i++) {
        int nth = row + i * apart;
        copyPart(to.element + place(nth), from[0] + i * apart * ld + next, Deep ? lines - nth : left - nth, Deep ? left - at : lines - at);
      }
    next += step;
    left -= stepK;
  }

 private:
  // place is where its chunk of a row goes.
  GK_MEMBER int place(int nth) const { return To::place((unsigned)(Deep ? nth : at), (unsigned)(Deep ? at : nth)); }
  // copyPart copies what there is of a chunk, of so many rows and columns from it on.
  GK_MEMBER void copyPart(float *to, const float *x, int rows, int columns) const {
    int there = rows <= 0 || columns < 0 ? 0 : columns > To::chunk ? To::chunk : columns;
    if (aligned16) return copy16(to, there ? x : base, there * 4);
    GK_ROLLED for (int j = 0; j < To::chunk; j++) copy4(to + j, j < there ? x + j : base, j < there ? 4 : 0);
  }
};

template <class Way, bool DeepA, bool DeepB>
struct Stage {
  Panel<tileM, DeepA> a;
  Panel<Way::tileN, DeepB> b;
};

// A WarpTile is what the tensor cores' ways share: warps of 64 x Broad of the tile, in
// products of 16 x 8. Of each 32 rows or columns a lane has four that are next to each
// other, one in each of four products; of k the four from 4*(lane%4) on, which the
// operands agree upon. With g = lane/4 and q = lane%4, row g of product t is row 4g+t of
// the warp's, row g+8 is row 32+4g+t; column c of product i of a group is column 4c+i.
template <int N, int Broad>
struct WarpTile {
  static constexpr int tileN = N, stages = N == 128 ? 3 : 4, down = tileM / 64, threads = down * (N / Broad) * 32, groups = Broad / 32;
  float sum[4][groups * 4][4] = {};

  GK_MEMBER static int top() { return (int)(warp() % down) * 64; }
  GK_MEMBER static int left() { return (int)(warp() / down) * Broad; }

  // What storeTile asks for: the n-th row of the thread, its p-th four columns, and
  // what it has there.
  static constexpr int rows = 8, fours = groups * 2;
  GK_MEMBER static int row(int n) { return top() + n % 2 * 32 + (int)(lane() / 4) * 4 + n / 2; }
  GK_MEMBER static int column(int p) { return left() + p / 2 * 32 + (int)(lane() % 4) * 8 + p % 2 * 4; }
  GK_MEMBER float value(int n, int p, int i) const { return sum[n / 2][p / 2 * 4 + i][n % 2 * 2 + p % 2]; }

  // straight is what the lane stores of its n-th row at straightColumn(p): it and the next
  // lane store 32 bytes next to each other, first those of one, then those of the other.
  // All lanes ask for it.
  GK_MEMBER static int straightColumn(int p) {
    int q = (int)(lane() % 4);
    return left() + p / 2 * 32 + (q / 2 * 2 + p % 2) * 8 + q % 2 * 4;
  }
  GK_MEMBER void straight(float v[4], int n, int p) const {
    int own = (int)(lane() % 2), group = p / 2 * 2;
    GK_UNROLL for (int i = 0; i < 4; i++) {
      float first = value(n, group, i), second = value(n, group + 1, i);
      float other = shuffleXor(own ? first : second, 1);
      v[i] = p % 2 != own ? other : own ? second : first;
    }
  }

  // multiplyBy takes a step. Product, of 16 columns of a and as many rows of b, is how.
  template <class Product, class A, class B>
  GK_MEMBER void multiplyBy(const Product &product, const A &a, const B &b) {
    int g = (int)(lane() / 4), q = (int)(lane() % 4);
    float upper[4][4], lower[4][4];
    a.four(upper, top() + 4 * g, 4 * q);
    a.four(lower, top() + 32 + 4 * g, 4 * q);
    GK_UNROLL for (int n = 0; n < groups; n++) {
      float y[4][4];
      b.four(y, left() + n * 32 + 4 * g, 4 * q);
      GK_UNROLL for (int t = 0; t < 4; t++)
        GK_UNROLL for (int i = 0; i < 4; i++) product(sum[t][n * 4 + i], upper[t], lower[t], y[i]);
    }
  }
};

// Out is half of the block's result in shared memory, where the stages were.
constexpr int halfM = tileM / 2;
template <int N>
using Out = float[halfM * (N + 4)];

// storeStraight writes what the block made from where it is: for a tile whose columns
// are all there, 16 bytes at a time, and an epilogue that needs no keys.
template <class Way>
GK_DEVICE void storeStraight(const Way &way, float *c, int64_t ldc, int64_t top, int64_t left, int m, bool add, const Epilogue &e) {
  GK_UNROLL for (int p = 0; p < Way::fours; p++) {
    int64_t column = left + Way::straightColumn(p);
    float bias[4] = {};
    GK_UNROLL for (int j = 0; e.bias && j < 4; j++) bias[j] = e.bias[column + j];
    Float4 before[Way::rows] = {};
    GK_UNROLL for (int i = 0; i < Way::rows; i++)
      if (add && top + Way::row(i) < m) before[i] = loadMutable4(c + (top + Way::row(i)) * ldc + column);
    GK_UNROLL for (int i = 0; i < Way::rows; i++) {
      int64_t row = top + Way::row(i);
      float v[4];
      way.straight(v, i, p);
      if (row >= m) continue;
      float had[4] = {before[i].x, before[i].y, before[i].z, before[i].w};
      GK_UNROLL for (int j = 0; j < 4; j++) {
        v[j] = v[j] + had[j] + bias[j];
        if (e.activation == ReLU && v[j] <= 0.f) v[j] = 0.f;
      }
      store4(c + row * ldc + column, Float4{v[0], v[1], v[2], v[3]});
    }
  }
}

// storeTile writes what the block made, half after half, a warp a row: whole lines, and
// one key a row.
template <class Way>
GK_DEVICE void storeTile(const Way &way, float *out, float *c, int64_t ldc, int64_t top, int64_t left, int m, int n, bool add,
                         const Epilogue &e) {
  constexpr int N = Way::tileN, stride = N + 4, each = N / 32;  // each: columns of a lane
  bool fast = each == 4 && wide(c, ldc);
  GK_ROLLED for (int half = 0; half < tileM; half += halfM) {
    barrier();  // all are done with what was there
    GK_UNROLL for (int i = 0; i < Way::rows; i++) {
      int row = Way::row(i) - half;
      if (row < 0 || row >= halfM) continue;
      GK_UNROLL for (int p = 0; p < Way::fours; p++)
        *(Float4 *)(out + row * stride + Way::column(p)) = {way.value(i, p, 0), way.value(i, p, 1), way.value(i, p, 2), way.value(i, p, 3)};
    }
    barrier();
    int last = m - top - half < halfM ? (int)(m - top - half) : halfM, at = (int)lane() * each;
    int there = (int)(n - left - at);  // columns from here on
    float *lines = c + (top + half) * ldc + left + at;
    constexpr int warps = Way::threads / 32;
    GK_ROLLED for (int i = (int)warp(); add && i < last; i += 4 * warps) {  // that many rows in flight
      float before[4][each];
      GK_UNROLL for (int r = 0; r < 4; r++)
        GK_UNROLL for (int j = 0; j < each; j++)
          before[r][j] = i + r * warps < last && j < there ? lines[(i + r * warps) * ldc + j] : 0.f;
      GK_UNROLL for (int r = 0; r < 4; r++)
        GK_UNROLL for (int j = 0; j < each; j++)
          if (i + r * warps < last) out[(i + r * warps) * stride + at + j] += before[r][j];
    }
    GK_ROLLED for (int i = (int)warp(); i < last; i += warps) {
      uint64_t key = rowKey(e, top + half + i);
      float *to = lines + i * ldc, v[each];
      GK_UNROLL for (int j = 0; j < each; j++)
        if (j < there) v[j] = finish(e, out[i * stride + at + j], key, (int)left + at + j);
      if (fast && there >= 4) {
        if constexpr (each == 4) store4(to, Float4{v[0], v[1], v[2], v[3]});
        continue;
      }
      GK_UNROLL for (int j = 0; j < each; j++)
        if (j < there) to[j] = v[j];
    }
  }
}

// product is the kernel: Way says how a step is multiplied and who holds what.
template <class Way, bool DeepA, bool DeepB>
GK_DEVICE void product(Stage<Way, DeepA, DeepB> *stage, float *c, int64_t ldc, const float *a, int64_t lda, const float *b,
                       int64_t ldb, int m, int n, int k, int each, float *partial, bool add, const Epilogue &e) {
  constexpr int N = Way::tileN, stages = Way::stages;
  int across = (n + N - 1) / N;
  int64_t top = (int64_t)(blockX() / across) * tileM, left = (int64_t)(blockX() % across) * N;
  int begin = (int)blockZ() * each, end = k - begin > each ? begin + each : k;
  int steps = (end - begin + stepK - 1) / stepK;
  Feed<Way::threads, tileM, DeepA> feedA(a, lda, top, m, begin, end);
  Feed<Way::threads, N, DeepB> feedB(b, ldb, left, n, begin, end);
  auto fill = [&](int i, int to) {
    if (i < steps) {
      feedA.copy(stage[to].a);
      feedB.copy(stage[to].b);
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
  if (after.threshold == 0 && after.activation != ELU && left + N <= n && wide(c, ldc))
    storeStraight(way, c, ldc, top, left, m, add, after);
  else
    storeTile(way, (float *)stage, c, ldc, top, left, m, n, add, after);
}

}  // namespace gk

// GEMM makes the kernels of one way: nn is a*b, nt a times transposed b, tn transposed
// a times b. partial is null where k is in one part. `beside` blocks share a multiprocessor.
#define GEMM(name, beside, Way, DeepA, DeepB)                                                                                       \
  KERNEL_BESIDE(name, Way::threads, beside, float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int m, int n,   \
                int k, int each, float *partial, int add, EPILOGUE) {                                                               \
    using Stages = gk::Stage<Way, DeepA, DeepB>[Way::stages];                                                                        \
    SHARED(Stages, stage);                                                                                                          \
    gk::product<Way, DeepA, DeepB>(stage, c, ldc, a, lda, b, ldb, m, n, k, each, partial, add != 0, EPILOGUE_GIVEN);                \
  }
