#include "drawing.h"

using namespace test;

// What is drawn is compared bit for bit; there are fewer targets than the grid is for.
TEST(draw_sources) {
  Drawing g;
  const int room = 48, targets = 29;
  Buffer<uint32_t> vertices(room);
  for (int t = 0; t < targets; t++) vertices[(size_t)t] = (uint32_t)(t * 7 % Drawing::vertices);
  uint64_t hop = Drawing::hop;
  int64_t n = targets;
  for (int fanout : {0, 1, 5, 32, 40, 100})
    for (int kind = 0; kind < 4; kind++) {
      bool looped = kind % 2, weighted = kind >= 2, normal = kind == 3, valued = kind > 0;
      std::vector<int64_t> bounds = {0};
      std::vector<int32_t> sources;
      std::vector<float> values;
      for (int t = 0; t < targets; t++) {
        for (auto e : g.row((int)vertices[(size_t)t], fanout, looped, weighted, normal)) sources.push_back(e.source), values.push_back(e.value);
        bounds.push_back((int64_t)sources.size());
      }
      int64_t all = (int64_t)sources.size();
      for (bool fits : {true, false}) {
        Buffer<int64_t> counts(targets + 1), partial(1), total(2);
        Buffer<int32_t> to(sources.size());
        Buffer<float> with(sources.size());
        run("draw_counts", tiles(room), counts.data(), partial.data(), &n, vertices.data(), DRAWING_OF(g, looped, weighted, normal), fanout);
        run("scan_apply", tiles(room), counts.data(), partial.data(), &n, nullptr, fits ? all : all - 1, total.data());
        same("bounds", counts, bounds);
        if (total[0] != all || total[1] != (fits ? all : 0)) wrong("%lld of %lld entries, want %lld", (long long)total[1], (long long)total[0], (long long)all);
        run("draw_sources", warps(room), to.data(), valued ? with.data() : (float *)nullptr, counts.data(), &n, total.data() + 1,
            vertices.data(), DRAWING_OF(g, looped, weighted, normal), fanout, &hop);
        if (fits) same("sources", to, sources);
        if (fits && valued) same("values", with, values);
        if (!fits)
          for (size_t i = 0; i < to.size(); i++)
            if (to[i] != -1) return wrong("entry %zu was written though they do not fit", i);
      }
    }
}

namespace {

template <class T>
void draws(const char *kernel) {
  Drawing g;
  const int targets = 21;
  Buffer<uint32_t> vertices(targets);
  for (int t = 0; t < targets; t++) vertices[(size_t)t] = (uint32_t)(t * 3 % Drawing::vertices);
  uint64_t hop = Drawing::hop;
  int64_t n = targets;
  int kind = 0;
  for (int cols : {5, 128, 131})
    for (int fanout : {0, 5, 32}) {
      bool looped = kind % 2, weighted = kind % 3 > 0, normal = kind % 3 > 1, mean = kind / 2 % 2 == 0, valued = kind % 3 > 0, even = kind % 4 < 2;
      kind++;
      Matrix<T> x(Drawing::vertices, cols, even);
      Matrix<float> y(targets, cols, even);
      x.fill(any);
      emulator::Dim grid = by_rows(targets + 9, cols);
      run(kernel, grid, y.data(), y.stride, cols, &n, vertices.data(), DRAWING_OF(g, looped, weighted, normal), fanout, &hop, x.data(), x.stride,
          mean, valued);
      for (int t = 0; t < targets; t++) {
        std::vector<double> sum((size_t)cols);
        auto row = g.row((int)vertices[(size_t)t], fanout, looped, weighted, normal);
        for (auto e : row)
          for (int c = 0; c < cols; c++) {
            double v = 0;
            if constexpr (std::is_same_v<T, uint16_t>) v = full(x(e.source, c));
            else v = x(e.source, c);
            sum[(size_t)c] += v * (valued ? e.value : 1);
          }
        for (int c = 0; c < cols; c++) near(kernel, t, c, y(t, c), mean && !row.empty() ? sum[(size_t)c] / (double)row.size() : sum[(size_t)c], 1e-5);
      }
      y.gaps(kernel);
    }
}

}  // namespace

TEST(draw_mean_f32) { draws<float>("draw_mean_f32"); }
TEST(draw_mean_bf16) { draws<uint16_t>("draw_mean_bf16"); }
