// LayerNorm: y = e((x-mean)/sqrt(variance+1e-5)*gamma + beta) of each row, and its
// gradients. stats (rows x 2) keeps mean and 1/deviation.
//
// Launch: layer_norm and layer_norm_back blocks of 256, a warp a row, rows/8 blocks
// rounded up; layer_norm_columns as partials.h. Traffic: x three times and dy twice, of
// which all but the first from the cache; results once.
#include "partials.h"

using namespace gk;

namespace {

// NormColumns are the sums of columns that dgamma and dbeta are made of.
struct NormColumns {
  const Columns<false> &c;
  const float *dy;
  int64_t ldy;
  const float *x;
  int64_t ldx;
  const float *stats;
  int64_t lds;
  float dgamma[4] = {}, dbeta[4] = {};

  template <int N>
  GK_MEMBER void take(int64_t row) {
    float g[N][4], v[N][4], mean[N], inverse[N];
    GK_UNROLL for (int j = 0; j < N; j++) {
      int64_t at = row + j * warpsOfBlock;
      mean[j] = stats[at * lds], inverse[j] = stats[at * lds + 1];
      c.load(g[j], dy + at * ldy);
      c.load(v[j], x + at * ldx);
    }
    GK_UNROLL for (int j = 0; j < N; j++)
      GK_UNROLL for (int i = 0; i < 4; i++) {
        dgamma[i] = fused(g[j][i], (v[j][i] - mean[j]) * inverse[j], dgamma[i]);
        dbeta[i] += g[j][i];
      }
  }
};

}  // namespace

// layer_norm: y may be x. The epilogue has no bias.
KERNEL(layer_norm, 256, float *y, int64_t ldy, float *stats, int64_t lds, const float *x, int64_t ldx, const float *gamma,
       const float *beta, int rows, int cols, EPILOGUE) {
  Epilogue e = EPILOGUE_GIVEN;
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  const float *from = x + row * ldx;
  float sum = 0.f;
  for (int c = (int)lane(); c < cols; c += 32) sum += from[c];
  float mean = sumOfWarp(sum) / (float)cols, square = 0.f;
  for (int c = (int)lane(); c < cols; c += 32) square = fused(from[c] - mean, from[c] - mean, square);
  float inverse = 1.f / root(sumOfWarp(square) / (float)cols + 1e-5f);
  uint64_t k = rowKey(e, row);
  for (int c = (int)lane(); c < cols; c += 32)
    y[row * ldy + c] = finish(e, fused((from[c] - mean) * inverse, gamma[c], beta[c]), k, c);
  if (lane() == 0) stats[row * lds] = mean, stats[row * lds + 1] = inverse;
}

// layer_norm_back sets dx, which may be dy, from the gradient before the epilogue.
KERNEL(layer_norm_back, 256, float *dx, int64_t ldd, const float *dy, int64_t ldy, const float *x, int64_t ldx, const float *stats,
       int64_t lds, const float *gamma, int rows, int cols) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  float mean = stats[row * lds], inverse = stats[row * lds + 1], sum = 0.f, along = 0.f;
  for (int c = (int)lane(); c < cols; c += 32) {
    float g = dy[row * ldy + c] * gamma[c];
    sum += g;
    along = fused(g, (x[row * ldx + c] - mean) * inverse, along);
  }
  sum = sumOfWarp(sum) / (float)cols;
  along = sumOfWarp(along) / (float)cols;
  for (int c = (int)lane(); c < cols; c += 32) {
    float normal = (x[row * ldx + c] - mean) * inverse;
    dx[row * ldd + c] = inverse * (dy[row * ldy + c] * gamma[c] - sum - normal * along);
  }
}

// layer_norm_columns makes the partials of dgamma and dbeta. It comes before
// layer_norm_back where that overwrites dy.
KERNEL(layer_norm_columns, 256, float *gammas, float *betas, const float *dy, int64_t ldy, const float *x, int64_t ldx,
       const float *stats, int64_t lds, int rows, int cols, int each) {
  SHARED(Sums, sums);
  Columns<false> c(cols);
  NormColumns of = {c, dy, ldy, x, ldx, stats, lds};
  rowsOfBlock(rows, each, of);
  together(gammas, sums, c, of.dgamma);
  barrier();  // sums have been read
  together(betas, sums, c, of.dbeta);
}
