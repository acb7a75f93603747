#include "epilogues.h"
#include "graph.h"

using namespace test;

namespace {

template <class T>
double number(T x) {
  if constexpr (std::is_same_v<T, uint16_t>) return full(x);
  else return x;
}

template <class T>
void aggregates(const char *kernel, double tolerance) {
  int kind = 0;
  for (int cols : {1, 7, 64, 128, 130, 132, 257})
    for (bool wide : {true, false}) {
      bool mean = kind % 2, weighted = kind % 3 > 0, add = kind % 5 > 2;
      Graph g(19, 23, kind % 4);
      Matrix<T> x(23, cols, wide);
      Matrix<float> y(19, cols, wide), before(19, cols);
      Epilogue e(kind++ % Epilogue::kinds, 19, cols);
      x.fill(any);
      before.fill(any);
      if (add) y.fill([&](int r, int c) { return before(r, c); });
      int each = kind % 4 == 3 ? 31 : kind % 4 + 1;
      run(kernel, by_rows((19 + each - 1) / each, cols), y.data(), y.stride, 19, cols, each, g.indptr.data(), g.indices.data(),
          weighted ? g.values.data() : (float *)nullptr, x.data(), x.stride, mean, add, EPILOGUE_OF(e));
      compare(kernel, y, [&](int r, int c) {
        double sum = 0;
        int64_t from = g.indptr[(size_t)r], to = g.indptr[(size_t)r + 1];
        for (int64_t at = from; at < to; at++) sum += g.value(weighted, at) * number(x(g.indices[(size_t)at], c));
        if (mean && to > from) sum /= (double)(to - from);
        return e(sum + (add ? before(r, c) : 0), r, c);
      }, tolerance);
    }
}

}  // namespace

TEST(aggregate_f32) { aggregates<float>("aggregate_f32", 3e-6); }
TEST(aggregate_bf16) { aggregates<uint16_t>("aggregate_bf16", 3e-6); }

TEST(aggregate_back) {
  int kind = 0;
  for (int cols : {1, 7, 100, 128, 140})
    for (bool wide : {true, false}) {
      bool mean = kind % 2, weighted = kind % 3 > 0, add = kind % 5 > 2;
      Graph g(21, 9, kind++ % 4);
      Matrix<float> dy(21, cols, wide), dx(9, cols, wide), before(9, cols);
      dy.fill(any);
      before.fill(any);
      if (add) dx.fill([&](int r, int c) { return before(r, c); });
      int each = kind % 3 + 1;
      run("aggregate_back", by_rows((9 + each - 1) / each, cols), dx.data(), dx.stride, 9, cols, each, g.columns.data(), g.targets.data(), g.edges.data(),
          g.indptr.data(), weighted ? g.values.data() + g.start() : (float *)nullptr, dy.data(), dy.stride, mean, add);
      compare("aggregate_back", dx, [&](int s, int c) {
        double sum = add ? before(s, c) : 0;
        for (int r = 0; r < g.rows; r++)
          for (int64_t at = g.indptr[(size_t)r]; at < g.indptr[(size_t)r + 1]; at++)
            if (g.indices[(size_t)at] == s)
              sum += g.value(weighted, at) * dy(r, c) / (mean ? (double)(g.indptr[(size_t)r + 1] - g.indptr[(size_t)r]) : 1);
        return sum;
      }, 2e-5);
    }
}

// Numbers are few, so that many are equal, and some are not finite.
TEST(aggregate_max) {
  for (int cols : {5, 130}) {
    Graph g(21, 9, 2);
    Matrix<float> x(9, cols), y(21, cols, false), dy(21, cols), dx(9, cols), before(9, cols);
    Matrix<int32_t> which(21, cols, false);
    x.fill([](int r, int c) { return r == 3 && c == 2 ? -INFINITY : below(4) - 2; });
    dy.fill(any);
    before.fill(any);
    run("aggregate_max", by_rows(21, cols), y.data(), y.stride, which.data(), which.stride, 21, cols, g.indptr.data(), g.indices.data(),
        x.data(), x.stride);
    for (bool add : {false, true}) {
      if (add) dx.fill([&](int r, int c) { return before(r, c); });
      run("aggregate_max_back", by_rows(9, cols), dx.data(), dx.stride, 9, cols, g.columns.data(), g.targets.data(), dy.data(), dy.stride,
          which.data(), which.stride, add);
      Matrix<float> want(9, cols);
      want.fill([&](int r, int c) { return add ? before(r, c) : 0; });
      for (int r = 0; r < 21; r++)
        for (int c = 0; c < cols; c++) {
          float best = 0;
          int from = -1;
          for (int64_t at = g.indptr[(size_t)r]; at < g.indptr[(size_t)r + 1]; at++) {
            int s = g.indices[(size_t)at];
            if (from < 0 || x(s, c) > best) best = x(s, c), from = s;
          }
          near("aggregate_max", r, c, y(r, c), best, 0);
          near("aggregate_max's source", r, c, which(r, c), from, 0);
          if (from >= 0) want(from, c) += dy(r, c);
        }
      compare("aggregate_max_back", dx, [&](int r, int c) { return want(r, c); }, 1e-6);
    }
    y.gaps("aggregate_max");
    which.gaps("aggregate_max's sources");
  }
}
