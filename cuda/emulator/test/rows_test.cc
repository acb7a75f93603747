#include "epilogues.h"
#include "test.h"

using namespace test;

namespace {

template <class To, class From>
void gathers(const char *kernel) {
  for (int cols : {3, 100, 128, 131})
    for (bool wide : {true, false}) {
      Matrix<From> a(5, cols, wide), b(1, cols, wide), c(40, cols, !wide);
      a.fill(any), b.fill(any), c.fill(any);
      uint32_t first[] = {10, 15, 100};
      uint64_t base[] = {box(a.data()), box(b.data()), box(c.data())};
      int64_t stride[] = {a.stride, b.stride, c.stride};
      uint32_t ids[] = {10, 14, 15, 100, 139, 139, 12, 101, 10};
      Matrix<To> y(9, cols, wide);
      run(kernel, by_rows(9, cols), y.data(), y.stride, 9, cols, &first[0], &base[0], &stride[0], 3, &ids[0]);
      for (int r = 0; r < 9; r++)
        for (int j = 0; j < cols; j++) {
          uint32_t id = ids[r];
          From x = id < 15 ? a((int)id - 10, j) : id < 100 ? b(0, j) : c((int)id - 100, j);
          double want, got;
          if constexpr (std::is_same_v<From, float>) want = x;
          else want = full(x);
          if constexpr (std::is_same_v<To, float>) got = y(r, j);
          else got = full(y(r, j)), want = full(half((float)want));
          near(kernel, r, j, got, want, 0);
        }
      y.gaps(kernel);
    }
}

}  // namespace

TEST(gather) {
  gathers<float, float>("gather_f32_f32");
  gathers<float, uint16_t>("gather_f32_bf16");
  gathers<uint16_t, float>("gather_bf16_f32");
  gathers<uint16_t, uint16_t>("gather_bf16_bf16");
}

TEST(apply) {
  for (int kind = 0; kind < Epilogue::kinds + 2; kind++)
    for (bool wide : {true, false}) {
      int rows = 91, cols = kind % 2 ? 133 : 64;
      Epilogue e(kind, rows, cols);
      Matrix<float> x(rows, cols, wide), y(rows, cols, wide), dy(rows, cols, wide), dx(rows, cols, wide);
      x.fill(any), dy.fill(any);
      // What is 0 before the activation is not what was dropped.
      for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c += 5) x(r, c) = e.biased ? -e.bias[(size_t)c] : 0.f;
      run("apply", by_rows(rows, cols), y.data(), y.stride, x.data(), x.stride, rows, cols, EPILOGUE_OF(e));
      compare("apply", y, [&](int r, int c) { return e(x(r, c), r, c); }, 2e-6);
      run("apply", by_rows(rows, cols), x.data(), x.stride, x.data(), x.stride, rows, cols, EPILOGUE_OF(e));
      compare("apply in place", x, [&](int r, int c) { return y(r, c); }, 0);

      // Gradients, and the bias's: of 40 rows a block, some of a warp's in flight at once.
      Buffer<float> sums((size_t)cols), parts(3 * (size_t)cols);
      for (int c = 0; c < cols; c++) sums[(size_t)c] = 100;
      emulator::Dim grid{3, (unsigned)(cols + 127) / 128, 1};
      run("apply_back", grid, dx.data(), dx.stride, parts.data(), dy.data(), dy.stride, y.data(), y.stride, rows, cols, 40, EPILOGUE_OF(e));
      run("add_partials", {(unsigned)(cols + 31) / 32, 1, 1}, sums.data(), parts.data(), 3, cols);
      compare("apply_back", dx, [&](int r, int c) { return e.back(dy(r, c), y(r, c), r, c); }, 2e-6);
      for (int c = 0; c < cols; c++) {
        double sum = 100;
        for (int r = 0; r < rows; r++) sum += e.back(dy(r, c), y(r, c), r, c);
        near("the bias's gradient", 0, c, sums[(size_t)c], sum, 1e-6);
      }
      run("apply_back", grid, dy.data(), dy.stride, nullptr, dy.data(), dy.stride, y.data(), y.stride, rows, cols, 40, EPILOGUE_OF(e));
      compare("apply_back in place", dy, [&](int r, int c) { return dx(r, c); }, 0);
    }
}

TEST(column_sums) {
  for (int rows : {1, 8, 90})
    for (int cols : {1, 128, 200})
      for (bool wide : {true, false}) {
        Matrix<float> x(rows, cols, wide);
        x.fill(any);
        int each = 40, blocks = (rows + each - 1) / each;
        Buffer<float> sums((size_t)cols), parts((size_t)(blocks * cols));
        for (int c = 0; c < cols; c++) sums[(size_t)c] = (float)c;
        run("column_sums", {(unsigned)blocks, (unsigned)(cols + 127) / 128, 1}, parts.data(), x.data(), x.stride, rows, cols, each);
        run("add_partials", {(unsigned)(cols + 31) / 32, 1, 1}, sums.data(), parts.data(), blocks, cols);
        for (int c = 0; c < cols; c++) {
          double sum = c;
          for (int r = 0; r < rows; r++) sum += x(r, c);
          near("column_sums", 0, c, sums[(size_t)c], sum, 1e-6);
        }
      }
}

TEST(combine) {
  for (int types = 0; types < 8; types++)
    for (bool wide : {true, false}) {
      int rows = 9, cols = wide ? 100 : 129;
      Matrix<float> y(rows, cols, wide), a(rows, cols, wide), b(rows, cols, wide);
      Matrix<uint16_t> y16(rows, cols, wide), a16(rows, cols, wide), b16(rows, cols, wide);
      a.fill(any), b.fill(any), a16.fill(any), b16.fill(any);
      bool fy = types & 1, fa = types & 2, fb = types & 4;
      auto one = [](bool isHalf, Matrix<float> &f, Matrix<uint16_t> &h) { return isHalf ? box(h.data()) : box(f.data()); };
      auto type = [](bool isHalf) { return isHalf ? 2 : 0; };
      for (bool with : {true, false}) {
        run("combine", by_rows(rows, cols), one(fy, y, y16), type(fy), y.stride, rows, cols, 0.5f, one(fa, a, a16), type(fa), a.stride, 3.f,
            with ? one(fb, b, b16) : 0, type(fb), b.stride);
        for (int r = 0; r < rows; r++)
          for (int c = 0; c < cols; c++) {
            double va = fa ? full(a16(r, c)) : a(r, c), vb = fb ? full(b16(r, c)) : b(r, c), want = 0.5 * va + (with ? 3 * vb : 0);
            near("combine", r, c, fy ? full(y16(r, c)) : y(r, c), fy ? full(half((float)want)) : want, fy ? 4e-3 : 1e-6);
          }
      }
      y.gaps("combine"), y16.gaps("combine");
    }
}

TEST(scale_rows) {
  for (bool wide : {true, false}) {
    Matrix<float> x(10, 130, wide), y(10, 130, wide), scale(10, 1, false);
    x.fill(any), scale.fill(any);
    run("scale_rows", by_rows(10, 130), y.data(), y.stride, 10, 130, x.data(), x.stride, scale.data(), scale.stride);
    compare("scale_rows", y, [&](int r, int c) { return (double)scale(r, 0) * x(r, c); }, 1e-7);
  }
}

TEST(keep_max) {
  int rows = 9, cols = 131;
  Matrix<float> y(rows, cols, false), dx(rows, cols), dy(rows, cols), x[3] = {{rows, cols}, {rows, cols}, {rows, cols}};
  Matrix<int32_t> which(rows, cols);
  dy.fill(any);
  for (int i = 0; i < 3; i++) {
    x[i].fill([](int, int) { return below(3); });
    run("keep_max", by_rows(rows, cols), y.data(), y.stride, which.data(), which.stride, rows, cols, x[i].data(), x[i].stride, i, i == 0);
  }
  auto best = [&](int r, int c) {
    int b = 0;
    for (int i = 1; i < 3; i++)
      if (x[i](r, c) > x[b](r, c)) b = i;
    return b;
  };
  compare("keep_max", y, [&](int r, int c) { return x[best(r, c)](r, c); }, 0);
  for (int i = 0; i < 3; i++) {
    run("keep_max_back", by_rows(rows, cols), dx.data(), dx.stride, rows, cols, dy.data(), dy.stride, which.data(), which.stride, i);
    compare("keep_max_back", dx, [&](int r, int c) { return best(r, c) == i ? dy(r, c) : 0; }, 0);
  }
}

TEST(odd) {
  for (double bad : {0.0, (double)NAN, (double)INFINITY, -(double)INFINITY}) {
    Matrix<float> x(9, 133, false);
    x.fill(any);
    int any = 0;
    if (bad != 0) x(8, 132) = (float)bad;
    run("odd", by_rows(9, 133), &any, x.data(), x.stride, 9, 133);
    near("odd", 0, 0, any, bad != 0, 0);
  }
}
