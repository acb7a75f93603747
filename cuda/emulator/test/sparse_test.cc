#include "epilogues.h"
#include "graph.h"

using namespace test;

TEST(densify) {
  for (bool weighted : {false, true}) {
    Graph g(19, 45, 3);
    Matrix<float> y(19, 45, weighted);
    run("densify", {3, 1, 1}, y.data(), y.stride, 19, 45, g.indptr.data(), g.indices.data(), weighted ? g.values.data() : (float *)nullptr);
    compare("densify", y, [&](int r, int c) {
      double sum = 0;
      for (int64_t at = g.indptr[(size_t)r]; at < g.indptr[(size_t)r + 1]; at++)
        if (g.indices[(size_t)at] == c) sum += g.value(weighted, at);
      return sum;
    }, 1e-6);
  }
}

TEST(drop_values) {
  for (bool given : {false, true})
    for (int kind : {0, 2}) {
      Graph g(19, 45, 3);
      Epilogue e(kind, 19, 45);
      size_t n = (size_t)g.entries();
      Buffer<float> from(n), to(n);
      for (size_t i = 0; i < n; i++) from[i] = (float)drawn();
      run("drop_values", {3, 1, 1}, to.data(), given ? from.data() : (float *)nullptr, 19, g.indptr.data(), g.indices.data(), e.key,
          e.p > 0 ? e.vertices.data() : (uint32_t *)nullptr, e.threshold(), (float)(1 / (1 - e.p)));
      for (int r = 0; r < 19; r++)
        for (int64_t at = g.indptr[(size_t)r]; at < g.indptr[(size_t)r + 1]; at++) {
          size_t i = (size_t)(at - g.start());
          int c = g.indices[(size_t)at];
          near("drop_values", r, c, to[i], e.drops(r, c) ? 0 : (given ? from[i] : 1) / (1 - e.p), 1e-6);
        }
    }
}
