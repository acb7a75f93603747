// drawing.h: a graph to draw from, and what is drawn as plain loops.
#pragma once
#include "epilogues.h"
#include "scans.h"

namespace test {

struct Drawing {
  static constexpr int vertices = 40;
  static constexpr uint64_t hop = 0x123456789abcdefull;
  Buffer<int64_t> indptr;
  Buffer<int32_t> indices;
  Buffer<float> weights, inverse;
  Buffer<uint64_t> loops;

  Drawing() : Drawing(degrees()) {}

  // from is the entries that are drawn for v, by their places in the graph.
  std::vector<int64_t> from(int v, int fanout) {
    int64_t start = indptr[(size_t)v];
    int n = (int)(indptr[(size_t)v + 1] - start);
    std::vector<int64_t> drawn;
    if (fanout == 0 || n <= fanout) {
      for (int i = 0; i < n; i++) drawn.push_back(start + i);
      return drawn;
    }
    uint64_t s = child(hop, (uint64_t)v);
    for (int last = n - fanout; last < n; last++) {
      s += 0xa0761d6478bd642full;
      unsigned __int128 product = (unsigned __int128)s * (s ^ 0xe7037ed1a0b428dbull);
      uint64_t random = (uint64_t)(product >> 64) ^ (uint64_t)product;
      int64_t at = start + (int64_t)((unsigned __int128)random * (uint64_t)(last + 1) >> 64);
      for (int64_t before : drawn)
        if (before == at) {
          at = start + last;
          break;
        }
      drawn.push_back(at);
    }
    return drawn;
  }
  bool adds(int v) { return !(loops[(size_t)v / 64] >> v % 64 & 1); }

  struct Entry {
    int source;
    float value;
  };
  // row is the entries of a target in a form.
  std::vector<Entry> row(int v, int fanout, bool looped, bool weighted, bool normal) {
    std::vector<Entry> all;
    auto drawn = from(v, fanout);
    auto entry = [&](int u, float value) { all.push_back({u, normal ? value * (inverse[(size_t)v] * inverse[(size_t)u]) : value}); };
    if (looped && adds(v)) entry(v, 1);
    int n = (int)(indptr[(size_t)v + 1] - indptr[(size_t)v]);
    float scale = (int)drawn.size() < n ? (float)n / (float)drawn.size() : 1;
    for (int64_t at : drawn) entry(indices[(size_t)at], weighted ? scale * weights[(size_t)at] : scale);
    return all;
  }

 private:
  static std::vector<int> degrees() {
    const int some[] = {3, 0, 1, 33, 70, 4, 5, 32, 130, 6};
    std::vector<int> d;
    for (int v = 0; v < vertices; v++) d.push_back(some[v % 10]);
    return d;
  }
  static size_t sum(const std::vector<int> &d) {
    size_t n = 0;
    for (int k : d) n += (size_t)k;
    return n;
  }
  explicit Drawing(const std::vector<int> &d)
      : indptr(vertices + 1), indices(sum(d)), weights(sum(d)), inverse(vertices), loops(1) {
    loops[0] = 0x5555123412345678ull;
    int64_t at = 0;
    for (int v = 0; v < vertices; v++) {
      indptr[(size_t)v] = at;
      inverse[(size_t)v] = (float)(drawn() + 2);
      for (int i = 0; i < d[(size_t)v]; i++) {
        indices[(size_t)at] = below(vertices);
        weights[(size_t)at++] = (float)(drawn() + 2);
      }
    }
    indptr[vertices] = at;
  }
};

#define DRAWING_OF(g, looped, weighted, normal)                                                          \
  g.indptr.data(), g.indices.data(), (weighted ? g.weights.data() : (float *)nullptr),                   \
      (looped ? g.loops.data() : (uint64_t *)nullptr), (normal ? g.inverse.data() : (float *)nullptr)

}  // namespace test
