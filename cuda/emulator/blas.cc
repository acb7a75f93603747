// As much of cuBLAS as hopmesh calls, in plain loops, on the streams of the emulator:
// the emulator's library is one of cuBLAS, too.
#include <string.h>

#include "api.h"

using namespace emulator;

namespace {

struct Blas {
  CUstream stream;
};

// rounded keeps as many bits of fraction as a way to compute does.
float rounded(float x, int bits) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  uint32_t half = (1u << (23 - bits)) >> 1, mask = ~((1u << (23 - bits)) - 1);
  u = (u + half) & mask;
  memcpy(&x, &u, sizeof u);
  return x;
}

}  // namespace

#define BLAS extern "C" __attribute__((visibility("default"))) int

BLAS cublasCreate_v2(Blas **b) {
  *b = new Blas{nullptr};
  return 0;
}

BLAS cublasDestroy_v2(Blas *b) {
  delete b;
  return 0;
}

BLAS cublasSetStream_v2(Blas *b, CUstream s) {
  b->stream = s;
  return 0;
}

BLAS cublasSetWorkspace_v2(Blas *, void *at, size_t bytes) { return at && bytes ? 0 : 7; }

BLAS cublasGetVersion_v2(Blas *, int *version) {
  *version = 130100;
  return 0;
}

BLAS cublasGemmEx(Blas *blas, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int, int lda, const float *b, int, int ldb,
                  const float *beta, float *c, int, int ldc, int compute, int) {
  emulator::Device &d = emulator::device();
  std::lock_guard<std::mutex> held(d.lock);
  if (CUresult code = d.fault.meet(__func__, d.broken)) return code == CUDA_ERROR_OUT_OF_MEMORY ? 15 : 13;
  if (d.broken) return 13;
  if (m < 0 || n < 0 || k < 0 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m) return 7;
  int bits = compute == 77 ? 10 : compute == 75 ? 7 : 23;
  float by = *alpha, keep = *beta;
  CUresult code = put(d, blas->stream, [=] {
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t l = 0; l < k; l++)
          sum += (double)rounded(ta ? a[i * lda + l] : a[l * lda + i], bits) * rounded(tb ? b[l * ldb + j] : b[j * ldb + l], bits);
        float &to = c[j * ldc + i];
        to = (float)(by * sum + (keep == 0 ? 0 : keep * (double)to));
      }
  });
  return code ? 13 : 0;
}
