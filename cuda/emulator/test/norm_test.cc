#include "epilogues.h"
#include "test.h"

using namespace test;

TEST(layer_norm) {
  for (int cols : {1, 31, 140})
    for (int kind : {0, 2}) {
      int rows = 75, each = 40;
      Epilogue e(kind, rows, cols);
      Matrix<float> x(rows, cols, false), y(rows, cols), dy(rows, cols), dx(rows, cols), stats(rows, 2, false), gamma(1, cols), beta(1, cols);
      x.fill([](int r, int) { return 10 * (r % 13) + drawn(); }), dy.fill(any), gamma.fill(any), beta.fill(any);
      run("layer_norm", {10, 1, 1}, y.data(), y.stride, stats.data(), stats.stride, x.data(), x.stride, gamma.data(), beta.data(), rows, cols,
          EPILOGUE_OF(e));
      Buffer<float> gammas(2 * (size_t)cols), betas(2 * (size_t)cols), dgamma((size_t)cols), dbeta((size_t)cols);
      for (int c = 0; c < cols; c++) dgamma[(size_t)c] = dbeta[(size_t)c] = 10;
      run("layer_norm_columns", {2, (unsigned)(cols + 127) / 128, 1}, gammas.data(), betas.data(), dy.data(), dy.stride, x.data(), x.stride,
          stats.data(), stats.stride, rows, cols, each);
      run("add_partials", {(unsigned)(cols + 31) / 32, 1, 1}, dgamma.data(), gammas.data(), 2, cols);
      run("add_partials", {(unsigned)(cols + 31) / 32, 1, 1}, dbeta.data(), betas.data(), 2, cols);
      run("layer_norm_back", {10, 1, 1}, dx.data(), dx.stride, dy.data(), dy.stride, x.data(), x.stride, stats.data(), stats.stride,
          gamma.data(), rows, cols);

      std::vector<double> mean, inverse;
      for (int r = 0; r < rows; r++) {
        double m = 0, v = 0;
        for (int c = 0; c < cols; c++) m += x(r, c) / cols;
        for (int c = 0; c < cols; c++) v += (x(r, c) - m) * (x(r, c) - m) / cols;
        mean.push_back(m), inverse.push_back(1 / sqrt(v + 1e-5));
        near("mean", r, 0, stats(r, 0), m, 1e-6);
        // A row of one column has a variance of rounding errors.
        if (cols > 1) near("1/deviation", r, 1, stats(r, 1), inverse.back(), 1e-4);
      }
      if (cols == 1) continue;
      auto normal = [&](int r, int c) { return (x(r, c) - mean[(size_t)r]) * inverse[(size_t)r]; };
      compare("layer_norm", y, [&](int r, int c) { return e(normal(r, c) * gamma(0, c) + beta(0, c), r, c); }, 1e-4);
      compare("layer_norm_back", dx, [&](int r, int c) {
        double sum = 0, along = 0;
        for (int j = 0; j < cols; j++) sum += dy(r, j) * gamma(0, j) / cols, along += dy(r, j) * gamma(0, j) * normal(r, j) / cols;
        return inverse[(size_t)r] * (dy(r, c) * gamma(0, c) - sum - normal(r, c) * along);
      }, 1e-4);
      for (int c = 0; c < cols; c++) {
        double g = 10, b = 10;
        for (int r = 0; r < rows; r++) g += dy(r, c) * normal(r, c), b += dy(r, c);
        near("dgamma", 0, c, dgamma[(size_t)c], g, 1e-4);
        near("dbeta", 0, c, dbeta[(size_t)c], b, 1e-6);
      }
      stats.gaps("stats");
    }
}
