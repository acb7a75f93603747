// Products on tensor cores, of floats rounded to bf16 and added up as floats: gemm.h.
// They are rounded as they come to the tensor cores: what is read is as much as with
// tf32, and nothing is written besides.
#include "gemm.h"

using namespace gk;

namespace {

struct Halves : Fragments16x8 {
  // two are the elements at depth k and k+1.
  template <class P>
  GK_MEMBER static uint32_t two(const P &p, int row, int k) {
    return halves(p.at(row, k), p.at(row, k + 1));
  }
  template <class A, class B>
  GK_MEMBER void multiply(const A &a, const B &b) {
    int g = (int)lane() / 4, q = (int)lane() % 4;
    GK_UNROLL for (int k = 0; k < A::k; k += 16) {
      uint32_t x[2][4], y[4][2];
      GK_UNROLL for (int i = 0; i < 2; i++)
        GK_UNROLL for (int j = 0; j < 4; j++) x[i][j] = two(a, top() + i * 16 + g + j % 2 * 8, k + 2 * q + j / 2 * 8);
      GK_UNROLL for (int i = 0; i < 4; i++)
        GK_UNROLL for (int j = 0; j < 2; j++) y[i][j] = two(b, left() + i * 8 + g, k + 2 * q + j * 8);
      GK_UNROLL for (int i = 0; i < 2; i++)
        GK_UNROLL for (int j = 0; j < 4; j++) mmaBF16(sum[i][j], x[i], y[j]);
    }
  }
};

}  // namespace

GEMM(gemm_bf16_nn, Halves, float, true, false)
GEMM(gemm_bf16_nt, Halves, float, true, true)
GEMM(gemm_bf16_tn, Halves, float, false, false)
