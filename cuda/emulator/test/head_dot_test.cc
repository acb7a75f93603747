#include "heads.h"
#include "test.h"

using namespace test;

TEST(head_dot) {
  for (const Shape &s : shapes) {
    int rows = 13, each = 8, cols = s.heads * s.width;
    Matrix<float> x(rows, cols, s.wide), a(1, cols, s.wide), y(rows, s.heads, false);
    x.fill(any), a.fill(any);
    run("head_dot", s.grid(rows, false), y.data(), y.stride, x.data(), x.stride, a.data(), rows, s.heads, s.width, s.group());
    compare("head_dot", y, [&](int r, int h) {
      double sum = 0;
      for (int c = h * s.width; c < (h + 1) * s.width; c++) sum += x(r, c) * a(0, c);
      return sum;
    }, 1e-5);

    Matrix<float> dy(rows, s.heads, false), dx(rows, cols, s.wide), before(rows, cols);
    Buffer<float> partial(2 * (size_t)cols), da((size_t)cols);
    dy.fill(any), before.fill(any);
    dx.fill([&](int r, int c) { return before(r, c); });
    for (int c = 0; c < cols; c++) da[(size_t)c] = 10;
    run("head_dot_back", {2, (unsigned)(cols + 127) / 128, 1}, dx.data(), dx.stride, partial.data(), dy.data(), dy.stride, x.data(),
        x.stride, a.data(), rows, cols, s.width, each);
    run("add_partials", {(unsigned)(cols + 31) / 32, 1, 1}, da.data(), partial.data(), 2, cols);
    compare("head_dot_back", dx, [&](int r, int c) { return before(r, c) + (double)dy(r, c / s.width) * a(0, c); }, 1e-6);
    for (int c = 0; c < cols; c++) {
      double sum = 10;
      for (int r = 0; r < rows; r++) sum += (double)dy(r, c / s.width) * x(r, c);
      near("da", 0, c, da[(size_t)c], sum, 1e-5);
    }
  }
}
