// graph.h: small graphs that have all that is awkward: targets without entries, one
// entry, more than a warp's lanes; the same source twice in a row; entries that begin
// at a position other than 0, in front of which lies nothing good.
#pragma once
#include "test.h"

namespace test {

struct Graph {
  int rows, cols;
  Buffer<int64_t> indptr;
  Buffer<int32_t> indices;
  Buffer<float> values;
  Buffer<int64_t> columns;  // the transpose
  Buffer<int32_t> targets, edges;

  Graph(int rows, int cols, int first = 0) : Graph(rows, cols, first, degrees(rows, cols)) {}

  static std::vector<int> degrees(int rows, int cols) {
    const int some[] = {3, 0, 1, 33, 64, 4, 7, 32};
    std::vector<int> d;
    for (int r = 0; r < rows; r++) d.push_back(cols ? some[r % 8] : 0);
    return d;
  }

  // start is where the first entry stands.
  int start() { return (int)indptr[0]; }
  int entries() { return (int)(indptr[(size_t)rows] - indptr[0]); }
  double value(bool weighted, int64_t at) { return weighted ? values[(size_t)at] : 1; }

 private:
  static size_t sum(const std::vector<int> &d) {
    size_t n = 0;
    for (int k : d) n += (size_t)k;
    return n;
  }
  Graph(int rows, int cols, int first, const std::vector<int> &d)
      : rows(rows), cols(cols), indptr((size_t)rows + 1), indices((size_t)first + sum(d)), values((size_t)first + sum(d)),
        columns((size_t)cols + 1), targets(sum(d)), edges(sum(d)) {
    int64_t at = first;
    indptr[0] = at;
    for (int r = 0; r < rows; r++) {
      for (int k = 0; k < d[(size_t)r]; k++) {
        bool again = k == 2;  // the same as the one before
        indices[(size_t)at] = again ? indices[(size_t)at - 1] : below(cols);
        values[(size_t)at++] = (float)drawn();
      }
      indptr[(size_t)r + 1] = at;
    }
    size_t n = 0;
    for (int c = 0; c < cols; c++) {
      columns[(size_t)c] = (int64_t)n;
      for (int r = 0; r < rows; r++)
        for (int64_t e = indptr[(size_t)r]; e < indptr[(size_t)r + 1]; e++)
          if (indices[(size_t)e] == c) targets[n] = r, edges[n++] = (int32_t)(e - first);
    }
    columns[(size_t)cols] = (int64_t)n;
  }
};

}  // namespace test
