// Products on tensor cores, of floats rounded to bf16 and added up as floats: gemm.h.
// They are rounded as they come to the tensor cores: what is read is as much as with
// tf32, and nothing is written besides.
#include "gemm.h"

using namespace gk;

namespace {

template <int N, int Broad>
struct Halves : WarpTile<N, Broad> {
  template <class A, class B>
  GK_MEMBER void multiply(const A &a, const B &b) {
    this->multiplyBy([](float sum[4], const float upper[4], const float lower[4], const float y[4]) {
      uint32_t x[4] = {halves(upper[0], upper[1]), halves(lower[0], lower[1]), halves(upper[2], upper[3]), halves(lower[2], lower[3])};
      uint32_t w[2] = {halves(y[0], y[1]), halves(y[2], y[3])};
      mmaBF16(sum, x, w);
    }, a, b);
  }
};

using Wide = Halves<128, 64>;
using Narrow = Halves<64, 32>;

}  // namespace

GEMM(gemm_bf16_nn, 2, Wide, true, false)
GEMM(gemm_bf16_nt, 2, Wide, true, true)
GEMM(gemm_bf16_tn, 2, Wide, false, false)
GEMM(gemm_bf16_nn_narrow, 3, Narrow, true, false)
GEMM(gemm_bf16_nt_narrow, 3, Narrow, true, true)
GEMM(gemm_bf16_tn_narrow, 3, Narrow, false, false)
