#include "epilogues.h"
#include "test.h"

using namespace test;

namespace {

enum Shape { NN, NT, TN };
const char *const suffix[] = {"_nn", "_nt", "_tn"};

// product compares one product, in so many parts of k.
void product(const std::string &way, Shape shape, int m, int n, int k, int parts, int kind, bool wide, bool narrow, double tolerance) {
  unsigned columns = way == "gemm_f32" || narrow ? 64 : 128;
  std::string name = way + suffix[shape] + (narrow ? "_narrow" : "");
  Matrix<float> a(shape == TN ? k : m, shape == TN ? m : k, wide), b(shape == NT ? n : k, shape == NT ? k : n, wide);
  Matrix<float> c(m, n, wide), before(m, n);
  a.fill(any), b.fill(any), before.fill(any);
  bool add = kind % 2;
  if (add) c.fill([&](int i, int j) { return before(i, j); });
  Epilogue e(kind, m, n);
  unsigned tiles = (unsigned)((m + 127) / 128 * ((n + (int)columns - 1) / (int)columns));
  int each = parts == 1 ? k : ((k + parts - 1) / parts + 31) / 32 * 32;
  parts = each ? (k + each - 1) / each : 1;
  if (parts <= 1) {
    run(name.c_str(), {tiles, 1, 1}, c.data(), c.stride, a.data(), a.stride, b.data(), b.stride, m, n, k, each, nullptr, add, EPILOGUE_OF(e));
  } else {
    Buffer<float> partial((size_t)(parts * m * n));
    run(name.c_str(), {tiles, 1, (unsigned)parts}, c.data(), c.stride, a.data(), a.stride, b.data(), b.stride, m, n, k, each, partial.data(), add,
        EPILOGUE_OF(e));
    run("gemm_sum", {(unsigned)m, (unsigned)(n + 127) / 128, 1}, c.data(), c.stride, partial.data(), parts, m, n, add, EPILOGUE_OF(e));
  }
  compare(name.c_str(), c, [&](int i, int j) {
    double sum = add ? before(i, j) : 0;
    for (int l = 0; l < k; l++) sum += (double)(shape == TN ? a(l, i) : a(i, l)) * (shape == NT ? b(j, l) : b(l, j));
    return e(sum, i, j);
  }, tolerance);
}

// Tiles are 128 x 128 or 128 x 64, steps 16 floats: sizes around those, ragged and one
// of all, and k that is shorter than what is copied ahead.
void products(const std::string &way, bool narrow, double tolerance) {
  int kind = 0, n = narrow || way == "gemm_f32" ? 64 : 128;
  for (Shape shape : {NN, NT, TN}) {
    product(way, shape, 128, n, 64, 1, kind++, true, narrow, tolerance);
    product(way, shape, 131, n + 3, 77, 1, kind++, true, narrow, tolerance);
    product(way, shape, 5, n + 6, 33, 1, kind++, false, narrow, tolerance);
    product(way, shape, 130, 3, 1, 1, kind++, false, narrow, tolerance);
    product(way, shape, 1, 1, 16, 1, kind++, true, narrow, tolerance);
    product(way, shape, 3, 2, 0, 1, kind++, true, narrow, tolerance);
    product(way, shape, 20, 30, 203, 3, kind++, true, narrow, tolerance);
    product(way, shape, 9, 134, 301, 6, kind++, true, narrow, tolerance);
    product(way, shape, 70, 100, 70, 1, kind++, true, narrow, tolerance);
    product(way, shape, 36, n, 40, 1, 0, true, narrow, tolerance);
    product(way, shape, 3, 5, 2000, 50, kind++, true, narrow, tolerance);  // more parts than warps
  }
}

}  // namespace

TEST(gemm_tf32) {
  products("gemm_tf32", false, 1e-2);
  products("gemm_tf32", true, 1e-2);
}
TEST(gemm_bf16) {
  products("gemm_bf16", false, 1e-1);
  products("gemm_bf16", true, 1e-1);
}
TEST(gemm_f32) { products("gemm_f32", false, 1e-5); }
