// epilogues.h: epilogues as plain loops in double.
#pragma once
#include "test.h"

namespace test {

inline uint64_t child(uint64_t k, uint64_t x) {
  uint64_t z = k + (x + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}
inline uint32_t column_bits(uint64_t k, uint32_t c) {
  uint32_t h = (uint32_t)k + c * 0x9e3779b9u;
  h ^= (uint32_t)(k >> 32);
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

struct Epilogue {
  Buffer<float> bias;
  Buffer<uint32_t> vertices;
  bool biased;
  int activation;
  double p;
  uint64_t key = 0x123456789abcdef;

  // kind runs through all that differ.
  static constexpr int kinds = 4;
  Epilogue(int kind, int rows, int cols)
      : bias((size_t)cols), vertices((size_t)rows), biased(kind == 1 || kind == 3), activation(kind % 3), p(kind >= 2 ? 0.4 : 0) {
    for (int c = 0; c < cols; c++) bias[(size_t)c] = (float)drawn();
    for (int r = 0; r < rows; r++) vertices[(size_t)r] = (uint32_t)r * 2654435761u;
  }
  uint32_t threshold() const { return (uint32_t)(p * 0x1p32); }
  bool drops(int r, int c) { return p > 0 && column_bits(child(key, vertices[(size_t)r]), (uint32_t)c) < threshold(); }
  double operator()(double x, int r, int c) {
    if (biased) x += bias[(size_t)c];
    if (activation == 1 && !(x > 0)) x = 0;
    if (activation == 2 && x < 0) x = expm1(x);
    return drops(r, c) ? 0 : x / (1 - p);
  }
  double back(double dy, double y, int r, int c) {
    double g = drops(r, c) ? 0 : dy / (1 - p), z = y * (1 - p);
    if (activation == 1 && !(z > 0)) return 0;
    return activation == 2 && z < 0 ? g * (z + 1) : g;
  }
};

// Without dropout, vertices are null.
#define EPILOGUE_OF(e) \
  (e.biased ? e.bias.data() : (float *)nullptr), e.activation, e.key, (e.p > 0 ? e.vertices.data() : (uint32_t *)nullptr), e.threshold(), (float)(1 / (1 - e.p))

}  // namespace test
