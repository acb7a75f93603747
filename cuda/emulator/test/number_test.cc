#include "scans.h"

using namespace test;

TEST(scan) {
  for (int64_t n : {0, 1, 5, 1023, 1024, 1025, 3100}) {
    Buffer<int64_t> x((size_t)n + 1), partial((size_t)n / 1024 + 1), total(2);
    std::vector<int64_t> want = {0};
    for (int64_t i = 0; i < n; i++) {
      x[(size_t)i] = below(3) + (i % 700 == 9 ? 1ll << 33 : 0);
      want.push_back(want.back() + x[(size_t)i]);
    }
    int64_t base = 77;
    run("scan_sums", tiles(n + 2000), partial.data(), x.data(), &n);
    run("scan_apply", tiles(n + 2000), x.data(), partial.data(), &n, &base, unlimited, total.data());
    same("sums", x, want);
    same("total", total, {want.back(), want.back() + 77});
  }
}

// Sources that occur once and very often, targets among them, in a table that is as
// full as it may be, so that places are searched for.
TEST(number) {
  const int n = 40, distinct = 128;
  for (int64_t entries : {0, 9, 1024, 2500}) {
    int64_t targets = n;
    int mask = 255, again = INT32_MAX;
    Buffer<uint32_t> roots(n), vertices(distinct), table(512);
    Buffer<int32_t> sources((size_t)entries);
    Buffer<int64_t> ranks((size_t)entries + 1), partial((size_t)entries / 1024 + 1), total(2);
    for (size_t i = 0; i < 512; i++) table[i] = 0x7fffffffu;
    auto id = [](int i) { return (uint32_t)i * 1024u; };
    std::vector<uint32_t> want;
    for (int i = 0; i < n; i++) roots[(size_t)i] = id(n - i), want.push_back(roots[(size_t)i]);
    std::vector<int32_t> numbers;
    for (int64_t e = 0; e < entries; e++) {
      uint32_t v = id(e % 3 ? below(distinct) : below(4));
      sources[(size_t)e] = (int32_t)v;
      size_t at = 0;
      while (at < want.size() && want[at] != v) at++;
      if (at == want.size()) want.push_back(v);
      numbers.push_back((int32_t)at);
    }
    run("number_roots", threads(n + 300), vertices.data(), table.data(), mask, roots.data(), &targets);
    run("number_check", threads(n + 300), &again, table.data(), mask, roots.data(), &targets);
    if (again != INT32_MAX) wrong("root %d is said to be there before", again);
    int64_t room = entries + 300;
    run("number_places", threads(room), sources.data(), table.data(), mask, &targets, &entries);
    run("number_firsts", tiles(room), ranks.data(), partial.data(), table.data(), sources.data(), &targets, &entries);
    run("scan_apply", tiles(room), ranks.data(), partial.data(), &entries, &targets, unlimited, total.data());
    run("number_new", threads(room), vertices.data(), table.data(), ranks.data(), sources.data(), &targets, &entries);
    run("number_sources", threads(room), sources.data(), table.data(), &entries);
    same("vertices", vertices, want);
    same("numbers", sources, numbers);
    if (total[1] != (int64_t)want.size()) wrong("%lld vertices, want %zu", (long long)total[1], want.size());
  }
}

TEST(number_check) {
  int64_t n = 300;
  int again = INT32_MAX;
  Buffer<uint32_t> roots(300), vertices(300), table(2048);
  for (size_t i = 0; i < 2048; i++) table[i] = 0x7fffffffu;
  for (size_t i = 0; i < 300; i++) roots[i] = (uint32_t)(i * i);
  roots[298] = roots[290] = roots[277] = roots[3];
  roots[281] = roots[280];
  run("number_roots", threads(n), vertices.data(), table.data(), 1023, roots.data(), &n);
  run("number_check", threads(n), &again, table.data(), 1023, roots.data(), &n);
  if (again != 277) wrong("root %d is said to be there before, want 277", again);
}
