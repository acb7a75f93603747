// Products of floats by the ordinary units, every one rounded as a float: gemm.h.
// Slower than tensor cores, and exact to the last digits of f32.
#include "gemm.h"

using namespace gk;

namespace {

// 16 x 16 threads; one has rows y, y+16, ... and the four columns from 4x on.
struct Floats {
  float sum[8][4] = {};

  static constexpr int tileN = 64, stages = 3, threads = 256, rows = 8, fours = 1;
  GK_MEMBER static int row(int n) { return (int)thread() / 16 + n * 16; }
  GK_MEMBER static int column(int) { return (int)thread() % 16 * 4; }
  GK_MEMBER static int straightColumn(int) { return column(0); }
  GK_MEMBER void straight(float v[4], int n, int) const {
    GK_UNROLL for (int i = 0; i < 4; i++) v[i] = sum[n][i];
  }
  GK_MEMBER float value(int n, int, int i) const { return sum[n][i]; }

  template <class A, class B>
  GK_MEMBER void multiply(const A &a, const B &b) {
    GK_ROLLED for (int k = 0; k < stepK; k++) {
      float y[4];
      GK_UNROLL for (int j = 0; j < 4; j++) y[j] = b.at(column(0) + j, k);
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
