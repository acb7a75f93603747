// Products on tensor cores, of floats rounded to tf32 (10 bits of fraction) and added
// up as floats: gemm.h.
#include "gemm.h"

using namespace gk;

namespace {

struct TF32 : Fragments16x8 {
  template <class A, class B>
  GK_MEMBER void multiply(const A &a, const B &b) {
    int g = (int)lane() / 4, q = (int)lane() % 4;
    GK_UNROLL for (int k = 0; k < A::k; k += 8) {
      uint32_t x[2][4], y[4][2];
      GK_UNROLL for (int i = 0; i < 2; i++)
        GK_UNROLL for (int j = 0; j < 4; j++) x[i][j] = tf32(a.at(top() + i * 16 + g + j % 2 * 8, k + q + j / 2 * 4));
      GK_UNROLL for (int i = 0; i < 4; i++)
        GK_UNROLL for (int j = 0; j < 2; j++) y[i][j] = tf32(b.at(left() + i * 8 + g, k + q + j * 4));
      GK_UNROLL for (int i = 0; i < 2; i++)
        GK_UNROLL for (int j = 0; j < 4; j++) mmaTF32(sum[i][j], x[i], y[j]);
    }
  }
};

}  // namespace

GEMM(gemm_tf32_nn, TF32, float, true, false)
GEMM(gemm_tf32_nt, TF32, float, true, true)
GEMM(gemm_tf32_tn, TF32, float, false, false)

// gemm_sum is c = e(the sum of `parts` partial products, and of c with add).
// Launch: rows.h.
KERNEL(gemm_sum, 256, float *c, int64_t ldc, const float *partial, int parts, int m, int n, int add, EPILOGUE) {
  Epilogue e = EPILOGUE_GIVEN;
  int64_t row = rowOfWarp();
  if (row >= m) return;
  Columns<false> columns(n);
  float sum[4] = {};
  if (add) columns.loadMutable(sum, c + row * ldc);
  int p = 0;
  for (; p + 4 <= parts; p += 4) {  // that many rows in flight
    float v[4][4];
    GK_UNROLL for (int j = 0; j < 4; j++) columns.load(v[j], partial + ((int64_t)(p + j) * m + row) * n);
    GK_UNROLL for (int j = 0; j < 4; j++)
      GK_UNROLL for (int i = 0; i < 4; i++) sum[i] += v[j][i];
  }
  for (; p < parts; p++) {
    float v[4];
    columns.load(v, partial + ((int64_t)p * m + row) * n);
    GK_UNROLL for (int i = 0; i < 4; i++) sum[i] += v[i];
  }
  columns.finish(sum, e, row);
  columns.store(c + row * ldc, sum);
}
