// Sums of columns, and the gradient of an epilogue, which has sums with it, as partials
// (partials.h), and what adds those up.
//
// Launch: partials.h; add_partials: blocks of 256 with 32 columns each. Traffic: every
// operand once, and partial twice.
#include "partials.h"

using namespace gk;

namespace {

template <bool Wide>
GK_DEVICE void columnSums(float *partial, Sums &sums, const float *x, int64_t ldx, int rows, int cols, int each) {
  Columns<Wide> c(cols);
  int64_t first = (int64_t)blockX() * each, end = first + each < rows ? first + each : rows;
  float sum[4] = {};
  for (int64_t row = first + warp(); row < end; row += warpsOfBlock) {
    float v[4];
    c.load(v, x + row * ldx);
    GK_UNROLL for (int i = 0; i < 4; i++) sum[i] += v[i];
  }
  together(partial, sums, c, sum);
}

template <bool Wide>
GK_DEVICE void applyBack(float *dx, int64_t ldx, float *partial, Sums &sums, const float *dy, int64_t ldy, const float *y, int64_t lds,
                         int rows, int cols, int each, const Epilogue &e) {
  Columns<Wide> c(cols);
  int64_t first = (int64_t)blockX() * each, end = first + each < rows ? first + each : rows;
  float sum[4] = {}, kept = 1.f / e.scale;
  for (int64_t row = first + warp(); row < end; row += warpsOfBlock) {
    float g[4], stored[4];
    uint64_t k = rowKey(e, row);
    c.loadMutable(g, dy + row * ldy);
    c.load(stored, y + row * lds);
    GK_UNROLL for (int i = 0; i < 4; i++) {
      if (c.has(i)) g[i] = finishBack(e, g[i], stored[i], kept, k, c.at(i));
      sum[i] += g[i];
    }
    c.store(dx + row * ldx, g);
  }
  if (partial) together(partial, sums, c, sum);
}

}  // namespace

// column_sums has no result but partial.
KERNEL(column_sums, 256, float *partial, const float *x, int64_t ldx, int rows, int cols, int each) {
  SHARED(Sums, sums);
  if (wide(x, ldx)) columnSums<true>(partial, sums, x, ldx, rows, cols, each);
  else columnSums<false>(partial, sums, x, ldx, rows, cols, each);
}

// apply_back is the gradient dx before an epilogue, from dy after it and y, which is
// what it stored. dx may be dy. With partial, the sums of dx's columns, for the
// gradient of the bias.
KERNEL(apply_back, 256, float *dx, int64_t ldx, float *partial, const float *dy, int64_t ldy, const float *y, int64_t lds, int rows,
       int cols, int each, EPILOGUE) {
  SHARED(Sums, sums);
  if (wide(dx, ldx) && wide(dy, ldy) && wide(y, lds))
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
