// Products on tensor cores, of floats rounded to tf32 (10 bits of fraction) and added
// up as floats: gemm.h.
#include "gemm.h"

using namespace gk;

namespace {

template <int N, int Broad>
struct TF32 : WarpTile<N, Broad> {
  template <class A, class B>
  GK_MEMBER void multiply(const A &a, const B &b) {
    this->multiplyBy([](float sum[4], const float upper[4], const float lower[4], const float y[4]) {
      GK_UNROLL for (int k = 0; k < 4; k += 2) {
        uint32_t x[4] = {uncut(upper[k]), uncut(lower[k]), uncut(upper[k + 1]), uncut(lower[k + 1])}, w[2] = {uncut(y[k]), uncut(y[k + 1])};
        mmaTF32(sum, x, w);
      }
    }, a, b);
  }
};

using Wide = TF32<128, 64>;
using Narrow = TF32<64, 32>;

}  // namespace

GEMM(gemm_tf32_nn, 2, Wide, true, false)
GEMM(gemm_tf32_nt, 2, Wide, true, true)
GEMM(gemm_tf32_tn, 2, Wide, false, false)
GEMM(gemm_tf32_nn_narrow, 3, Narrow, true, false)
GEMM(gemm_tf32_nt_narrow, 3, Narrow, true, true)
GEMM(gemm_tf32_tn_narrow, 3, Narrow, false, false)

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
