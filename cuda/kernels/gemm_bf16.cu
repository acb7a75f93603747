// Products on tensor cores, of floats rounded to bf16 and added up as floats: gemm.h.
// They are rounded as they come to the tensor cores: what is read is as much as with
// tf32, and nothing is written besides.
#include "gemm.h"

using namespace gk;

namespace {

template <int N>
struct Halves : Fragments16x8<N> {
  using F = Fragments16x8<N>;
  static constexpr int together = 2;
  // two are the elements at depth k and k+1.
  template <class P>
  GK_MEMBER static uint32_t two(const P &p, int row, int k) {
    return halves(p.at(row, k), p.at(row, k + 1));
  }
  template <class A, class B>
  GK_MEMBER void multiply(const A &a, const B &b) {
    int g = (int)(lane() / 4), q = (int)(lane() % 4);
    uint32_t y[F::broad][2];
    GK_UNROLL for (int i = 0; i < F::broad; i++)
      GK_UNROLL for (int j = 0; j < 2; j++) y[i][j] = two(b, F::left() + i * 8 + g, j * 8 + 2 * q);
    GK_UNROLL for (int i = 0; i < F::high; i++) {
      uint32_t x[4];
      GK_UNROLL for (int j = 0; j < 4; j++) x[j] = two(a, F::top() + i * 16 + j % 2 * 8 + g, j / 2 * 8 + 2 * q);
      GK_UNROLL for (int j = 0; j < F::broad; j++) mmaBF16(this->sum[i][j], x, y[j]);
    }
  }
};

}  // namespace

GEMM(gemm_bf16_nn, 2, Halves<128>, true, false)
GEMM(gemm_bf16_nt, 2, Halves<128>, true, true)
GEMM(gemm_bf16_tn, 2, Halves<128>, false, false)
GEMM(gemm_bf16_nn_narrow, 3, Halves<64>, true, false)
GEMM(gemm_bf16_nt_narrow, 3, Halves<64>, true, true)
GEMM(gemm_bf16_tn_narrow, 3, Halves<64>, false, false)
