// Sums of columns, and the gradient of an epilogue, which has sums with it, as partials
// (partials.h), and what adds those up.
//
// Launch: partials.h; add_partials: blocks of 256 with 32 columns each. Traffic: every
// operand once, and partial twice.
#include "partials.h"

using namespace gk;

namespace {

// Each row is added to those before it, however many are in flight.
template <bool Wide>
struct Column {
  const Columns<Wide> &c;
  const float *x;
  int64_t ldx;
  float sum[4] = {};

  template <int N>
  GK_MEMBER void take(int64_t row) {
    float v[N][4];
    GK_UNROLL for (int j = 0; j < N; j++) c.load(v[j], x + (row + j * warpsOfBlock) * ldx);
    GK_UNROLL for (int j = 0; j < N; j++)
      GK_UNROLL for (int i = 0; i < 4; i++) sum[i] += v[j][i];
  }
};

template <bool Wide>
GK_DEVICE void columnSums(float *partial, Sums &sums, const float *x, int64_t ldx, int rows, int cols, int each) {
  Columns<Wide> c(cols);
  Column<Wide> column = {c, x, ldx};
  rowsOfBlock(rows, each, column);
  together(partial, sums, c, column.sum);
}

// dx may be dy: a lane has read its elements of that before it writes them.
template <bool Wide>
struct Before {
  const Columns<Wide> &c;
  const Epilogue &e;
  float *dx;
  int64_t ldx;
  const float *dy;
  int64_t ldy;
  const float *y;
  int64_t lds;
  float kept, sum[4] = {};

  template <int N>
  GK_MEMBER void take(int64_t row) {
    float g[N][4], stored[N][4];
    GK_UNROLL for (int j = 0; j < N; j++) {
      c.loadMutable(g[j], dy + (row + j * warpsOfBlock) * ldy);
      c.load(stored[j], y + (row + j * warpsOfBlock) * lds);
    }
    GK_UNROLL for (int j = 0; j < N; j++) {
      int64_t at = row + j * warpsOfBlock;
      uint64_t k = rowKey(e, at);
      GK_UNROLL for (int i = 0; i < 4; i++) {
        if (c.has(i)) g[j][i] = finishBack(e, g[j][i], stored[j][i], kept, k, c.at(i));
        sum[i] += g[j][i];
      }
      c.store(dx + at * ldx, g[j]);
    }
  }
};

template <bool Wide>
GK_DEVICE void applyBack(float *dx, int64_t ldx, float *partial, Sums &sums, const float *dy, int64_t ldy, const float *y, int64_t lds,
                         int rows, int cols, int each, const Epilogue &e) {
  Columns<Wide> c(cols);
  Before<Wide> before = {c, e, dx, ldx, dy, ldy, y, lds, 1.f / e.scale};
  rowsOfBlock(rows, each, before);
  if (partial) together(partial, sums, c, before.sum);
}

}  // namespace

// column_sums has no result but partial.
KERNEL(column_sums, 256, float *partial, const float *x, int64_t ldx, int rows, int cols, int each) {
  SHARED(Sums, sums);
  if (cols % 4 == 0 && wide(x, ldx)) columnSums<true>(partial, sums, x, ldx, rows, cols, each);
  else columnSums<false>(partial, sums, x, ldx, rows, cols, each);
}

// apply_back is the gradient dx before an epilogue, from dy after it and y, which is
// what it stored. dx may be dy. With partial, the sums of dx's columns, for the
// gradient of the bias.
KERNEL(apply_back, 256, float *dx, int64_t ldx, float *partial, const float *dy, int64_t ldy, const float *y, int64_t lds, int rows,
       int cols, int each, EPILOGUE) {
  SHARED(Sums, sums);
  if (cols % 4 == 0 && wide(dx, ldx) && wide(dy, ldy) && wide(y, lds))
    applyBack<true>(dx, ldx, partial, sums, dy, ldy, y, lds, rows, cols, each, EPILOGUE_GIVEN);
  else
    applyBack<false>(dx, ldx, partial, sums, dy, ldy, y, lds, rows, cols, each, EPILOGUE_GIVEN);
}

// add_partials is sums[j] += the sum of partial's column j: a lane has a column, a warp
// every 8th row, and the sums of the warps are added up in their order.
KERNEL(add_partials, 256, float *sums, const float *partial, int rows, int cols) {
  using Shares = float[warpsOfBlock][32];
  SHARED(Shares, shares);
  int column = (int)(blockX() * 32 + lane());
  float sum = 0.f;
  for (int64_t r = warp(); column < cols && r < rows; r += warpsOfBlock) sum += partial[r * cols + column];
  shares[warp()][lane()] = sum;
  barrier();
  if (warp() != 0 || column >= cols) return;
  for (int w = 1; w < warpsOfBlock; w++) sum += shares[w][lane()];
  sums[column] += sum;
}
