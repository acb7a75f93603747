// Products of floats by the ordinary units, every one rounded as a float: gemm.h.
// Slower than tensor cores, and exact to the last digits of f32.
#include "gemm.h"

using namespace gk;

namespace {

// 16 x 16 threads; one has rows y, y+16, ... and columns 2x, 2x+1, 2x+32, 2x+33.
struct Floats {
  float sum[8][4] = {};

  static constexpr int tileN = 64, together = 1, rows = 8, pairs = 2;
  GK_MEMBER static int row(int n) { return (int)thread() / 16 + n * 16; }
  GK_MEMBER static int column(int p) { return (int)thread() % 16 * 2 + p * 32; }
  GK_MEMBER float value(int n, int p, int i) const { return sum[n][p * 2 + i]; }

  template <class A, class B>
  GK_MEMBER void multiply(const A &a, const B &b) {
    GK_ROLLED for (int k = 0; k < stepK; k++) {
      float y[4];
      GK_UNROLL for (int j = 0; j < 4; j++) y[j] = b.at(column(j / 2) + j % 2, k);
      GK_UNROLL for (int i = 0; i < 8; i++) {
        float x = a.at(row(i), k);
        GK_UNROLL for (int j = 0; j < 4; j++) sum[i][j] = fused(x, y[j], sum[i][j]);
      }
    }
  }
};

}  // namespace

GEMM(gemm_f32_nn, 2, Floats, true, false)
GEMM(gemm_f32_nt, 2, Floats, true, true)
GEMM(gemm_f32_tn, 2, Floats, false, false)
