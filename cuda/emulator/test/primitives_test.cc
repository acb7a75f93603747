#include <stdio.h>

#include "test.h"

using namespace test;

TEST(check_warp) {
  Buffer<uint32_t> out(192);
  run("check_warp", {1, 1, 1}, out.data());
  for (unsigned l = 0; l < 32; l++) {
    near("shuffle", 0, (int)l, out[l], (l + 1) % 32 * 7, 0);
    near("shuffleXor", 0, (int)l, out[32 + l], (l ^ 5) * 7, 0);
    near("votes", 0, (int)l, out[64 + l], 0xaaaaaaaau, 0);
    near("sumOfWarp", 0, (int)l, std::bit_cast<float>(out[96 + l]), 496, 0);
    near("maxOfWarp", 0, (int)l, std::bit_cast<float>(out[128 + l]), 31, 0);
    near("sumOfWarp of doubles", 0, (int)l, out[160 + l], 496e6 + 8, 0);
  }
}

TEST(check_block) {
  Buffer<uint32_t> out(3 * 256);
  int counts[3] = {0, 5, 0};
  float sum = 0;
  uint32_t claimed = 0;
  run("check_block", {3, 1, 1}, out.data(), &counts[0], &sum, &claimed);
  for (unsigned i = 0; i < 768; i++) near("through shared memory", 0, (int)i, out[i], i / 256 * 1000 + 255 - i % 256, 0);
  near("addAtomic", 0, 0, counts[0], 768, 0);
  near("minAtomic", 0, 0, counts[1], -255, 0);
  near("swapAtomic", 0, 0, counts[2], 1, 0);
  near("addAtomic of floats", 0, 0, sum, 384, 0);
}

TEST(check_copy) {
  Buffer<float> from(160), out(160);
  for (size_t i = 0; i < 160; i++) from[i] = (float)i + 1;
  run("check_copy", {1, 1, 1}, out.data(), from.data(), 101);
  for (int i = 0; i < 160; i++) near("a copy", 0, i, out[(size_t)i], i < 101 || (i >= 128 && i < 159) ? i + 1 : 0, 0);
}

TEST(check_memory) {
  Matrix<float> from(1, 256), to(1, 256);
  Matrix<uint16_t> half_from(1, 256), half_to(1, 256);
  from.fill(any), half_from.fill(any);
  run("check_memory", {1, 1, 1}, to.data(), from.data(), half_to.data(), half_from.data());
  for (int i = 0; i < 256; i++) {
    near("load4 and store4", 0, i, to(0, i), from(0, i), 0);
    near("load4 and store4 of halves", 0, i, half_to(0, i), half_from(0, i), 0);
  }
}

TEST(check_mma) {
  Buffer<float> out(256), a(128), b(64);
  Buffer<uint16_t> a16(256), b16(128);
  for (size_t i = 0; i < 128; i++) a[i] = full(half((float)drawn()));
  for (size_t i = 0; i < 64; i++) b[i] = full(half((float)drawn()));
  for (size_t i = 0; i < 256; i++) a16[i] = half((float)drawn());
  for (size_t i = 0; i < 128; i++) b16[i] = half((float)drawn());
  run("check_mma", {1, 1, 1}, out.data(), a.data(), b.data(), a16.data(), b16.data());
  for (size_t r = 0; r < 16; r++)
    for (size_t c = 0; c < 8; c++) {
      double one = 0, two = 0;
      for (size_t k = 0; k < 8; k++) one += (double)a[r * 8 + k] * b[k * 8 + c];
      for (size_t k = 0; k < 16; k++) two += (double)full(a16[r * 16 + k]) * full(b16[k * 8 + c]);
      near("mmaTF32", (int)r, (int)c, out[r * 8 + c], one, 1e-6);
      near("mmaBF16", (int)r, (int)c, out[128 + r * 8 + c], two, 1e-6);
    }
}

TEST(check_numbers) {
  const int n = 600;
  Buffer<float> out(8 * n), x(n);
  for (int i = 0; i < n; i++) x[(size_t)i] = (float)(i < 500 ? (i - 250) / 3.0 : pow(10, (i - 550) / 10.0));
  x[250] = 1e-20f;
  for (int i = 0; i < n; i++)
    if (x[(size_t)i] > 80) x[(size_t)i] = (float)i / 10;
  run("check_numbers", {3, 1, 1}, out.data(), x.data(), n);
  for (int i = 0; i < n; i++) {
    double v = x[(size_t)i], p = fabs(v);
    auto check = [&](const char *what, int f, double want, double tolerance) {
      double got = out[(size_t)(f * n + i)];
      if (!(fabs(got - want) <= tolerance * fabs(want) + 1e-37)) wrong("%s of %.9g is %.9g, want %.9g", what, v, got, want);
    };
    check("exponential", 0, exp(v), 1e-6);
    if (fabs(log(p)) > 0.1) check("logarithm", 1, log(p), 1e-6);
    check("exponentialLess1", 2, expm1(-p), 1e-6);
    check("root", 3, sqrt(p), 6e-8);
    check("rsqrtApprox", 4, 1 / sqrt(p), 1e-6);
    check("tf32", 5, v, 0x1p-11);
    near("narrow", 0, i, out[(size_t)(6 * n + i)], full(half((float)v)), 0);
    check("fused", 7, (double)(float)fma(v, v, -1), 0);
  }
}

// Ties, numbers that round up to infinity, and those below the normal ones.
TEST(check_halves) {
  std::vector<float> some = {1.f, 1.00390625f, 1.01171875f, -3.4e38f, 3.39e38f, 1e-40f, -0.f, INFINITY};
  const int n = 300;
  Buffer<float> x(2 * n);
  Buffer<uint32_t> out(n);
  for (size_t i = 0; i < 2 * n; i++) x[i] = i < some.size() ? some[i] : (float)drawn();
  run("check_halves", {2, 1, 1}, out.data(), x.data(), n);
  for (size_t i = 0; i < n; i++) near("halves", (int)i, 0, out[i], half(x[2 * i]) | (uint32_t)half(x[2 * i + 1]) << 16, 0);
}

// The vectors are Go's: cuda/kernels/testdata/keyed.txt.
TEST(check_keyed) {
  FILE *f = fopen("cuda/kernels/testdata/keyed.txt", "r");
  if (!f) return wrong("cuda/kernels/testdata/keyed.txt cannot be read: run from the top of the repository");
  std::vector<uint64_t> keys, numbers, want;
  unsigned long long line[6];
  while (fscanf(f, "%llx %llx %llx %llx %llx %llx", &line[0], &line[1], &line[2], &line[3], &line[4], &line[5]) == 6) {
    keys.push_back(line[0]), numbers.push_back(line[1]);
    want.insert(want.end(), line + 2, line + 6);
  }
  fclose(f);
  if (keys.size() < 100) wrong("%zu vectors", keys.size());
  Buffer<uint64_t> out(want.size());
  run("check_keyed", {(unsigned)(keys.size() + 255) / 256, 1, 1}, out.data(), keys.data(), numbers.data(), (int)keys.size());
  for (size_t i = 0; i < want.size(); i++)
    if (out[i] != want[i]) wrong("vector %zu, number %zu is %llx, want %llx", i / 4, i % 4, (unsigned long long)out[i], (unsigned long long)want[i]);
}
