// Products on tensor cores, of floats rounded to tf32 (10 bits of fraction) and added
// up as floats: gemm.h.
#include "gemm.h"

using namespace gk;

namespace {

template <int N>
struct TF32 : Fragments16x8<N> {
  using F = Fragments16x8<N>;
  static constexpr int together = 1;
  template <class A, class B>
  GK_MEMBER void multiply(const A &a, const B &b) {
    int g = (int)(lane() / 4), q = (int)(lane() % 4);
    GK_UNROLL for (int k = 0; k < stepK; k += 8) {
      uint32_t y[F::broad][2];
      GK_UNROLL for (int i = 0; i < F::broad; i++)
        GK_UNROLL for (int j = 0; j < 2; j++) y[i][j] = tf32(b.at(F::left() + i * 8 + g, k + j * 4 + q));
      GK_UNROLL for (int i = 0; i < F::high; i++) {
        uint32_t x[4];
        GK_UNROLL for (int j = 0; j < 4; j++) x[j] = tf32(a.at(F::top() + i * 16 + j % 2 * 8 + g, k + j / 2 * 4 + q));
        GK_UNROLL for (int j = 0; j < F::broad; j++) mmaTF32(this->sum[i][j], x, y[j]);
      }
    }
  }
};

}  // namespace

GEMM(gemm_tf32_nn, 2, TF32<128>, true, false)
GEMM(gemm_tf32_nt, 2, TF32<128>, true, true)
GEMM(gemm_tf32_tn, 2, TF32<128>, false, false)
GEMM(gemm_tf32_nn_narrow, 3, TF32<64>, true, false)
GEMM(gemm_tf32_nt_narrow, 3, TF32<64>, true, true)
GEMM(gemm_tf32_tn_narrow, 2, TF32<64>, false, false)

// gemm_sum is c = e(the sum of `parts` partial products, and of c with add). A block has
// one row and 128 columns of it: the grid is (rows, cols/128), rounded up. Each warp
// adds up an eighth of the parts, in order, and the first adds up the eighths.
KERNEL(gemm_sum, 256, float *c, int64_t ldc, const float *partial, int parts, int m, int n, int add, EPILOGUE) {
  Epilogue e = EPILOGUE_GIVEN;
  using Eighths = float[warpsOfBlock][columnsOfWarp];
  SHARED(Eighths, eighth);
  int64_t row = blockX();
  Columns<false> columns(n);
  float sum[4] = {};
  int each = (parts + warpsOfBlock - 1) / warpsOfBlock, p = (int)warp() * each, end = p + each < parts ? p + each : parts;
  GK_ROLLED for (; p + 4 <= end; p += 4) {  // that many rows in flight
    float v[4][4];
    GK_UNROLL for (int j = 0; j < 4; j++) columns.load(v[j], partial + ((int64_t)(p + j) * m + row) * n);
    GK_UNROLL for (int j = 0; j < 4; j++)
      GK_UNROLL for (int i = 0; i < 4; i++) sum[i] += v[j][i];
  }
  GK_ROLLED for (; p < end; p++) {
    float v[4];
    columns.load(v, partial + ((int64_t)p * m + row) * n);
    GK_UNROLL for (int i = 0; i < 4; i++) sum[i] += v[i];
  }
  GK_UNROLL for (int i = 0; i < 4; i++) eighth[warp()][lane() + i * 32] = sum[i];
  barrier();
  if (warp() > 0) return;
  GK_UNROLL for (int i = 0; i < 4; i++) sum[i] = 0.f;
  if (add) columns.loadMutable(sum, c + row * ldc);
  GK_UNROLL for (int w = 0; w < warpsOfBlock; w++)
    GK_UNROLL for (int i = 0; i < 4; i++) sum[i] += eighth[w][lane() + i * 32];
  columns.finish(sum, e, row);
  columns.store(c + row * ldc, sum);
}
