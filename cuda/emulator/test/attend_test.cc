#include "graph.h"
#include "heads.h"
#include "epilogues.h"

using namespace test;

namespace {

constexpr float slope = 0.2f;
double leaky(double x) { return x < 0 ? x * slope : x; }
double steep(double x) { return x < 0 ? slope : 1; }

// An Attention is a graph whose targets are some of its sources, what the kernels are
// given, and what is right, in double.
struct Attention {
  const Shape &s;
  int rows = 9, cols = 14, own = 4, columns;
  double p;
  Graph g{rows, cols, 3};
  Buffer<uint32_t> vertices{(size_t)cols};
  uint64_t key = 0x123456789abcdef;
  Matrix<float> x, dy, y, stats, dx, known;
  Matrix<double> wantY, wantStats, wantDx;

  Attention(const Shape &s, double p)
      : s(s), columns(s.heads * s.width), p(p), x(cols, columns, s.wide), dy(rows, columns, s.wide), y(rows, columns, s.wide),
        stats(rows, 2 * s.heads, false), dx(cols, columns, s.wide), known(rows, 4 * s.heads), wantY(rows, columns),
        wantStats(rows, 2 * s.heads), wantDx(cols, columns) {
    for (int c = 0; c < cols; c++) vertices[(size_t)c] = (uint32_t)c * 2654435761u;
    x.fill(any), dy.fill(any);
    known.stride = 4 * s.heads;  // without gaps
    for (auto m : {&wantY, &wantStats, &wantDx}) m->fill([](int, int) { return 0; });
  }
  uint32_t threshold() const { return (uint32_t)(p * 0x1p32); }
  double kept(int t, int source, int h) {
    uint64_t k = child(child(key, vertices[(size_t)(own + t)]), vertices[(size_t)source]);
    if (p > 0 && column_bits(k, (uint32_t)h) < threshold()) return 0;
    return 1 / (1 - p);
  }
  uint32_t *ends() { return p > 0 ? vertices.data() : nullptr; }
  float scale() const { return (float)(1 / (1 - p)); }

  // solve computes forward and back; back takes the gradient of an entry's score.
  void solve(const std::function<double(int, int, int)> &score, const std::function<void(int, int, int, double)> &back) {
    for (int t = 0; t < rows; t++)
      for (int h = 0; h < s.heads; h++) {
        int64_t from = g.indptr[(size_t)t], to = g.indptr[(size_t)t + 1];
        if (from == to) continue;
        double largest = -INFINITY, sum = 0, mean = 0;
        std::vector<double> alpha, gets;
        for (int64_t e = from; e < to; e++) largest = fmax(largest, score(t, g.indices[(size_t)e], h));
        for (int64_t e = from; e < to; e++) alpha.push_back(exp(score(t, g.indices[(size_t)e], h) - largest)), sum += alpha.back();
        wantStats(t, 2 * h) = largest, wantStats(t, 2 * h + 1) = sum;
        for (int64_t e = from; e < to; e++) {
          int source = g.indices[(size_t)e];
          double a = alpha[(size_t)(e - from)] /= sum, k = kept(t, source, h), got = 0;
          for (int c = h * s.width; c < (h + 1) * s.width; c++) {
            wantY(t, c) += a * k * x(source, c);
            wantDx(source, c) += a * k * dy(t, c);
            got += k * dy(t, c) * x(source, c);
          }
          gets.push_back(got);
          mean += a * got;
        }
        for (int64_t e = from; e < to; e++)
          back(t, g.indices[(size_t)e], h, alpha[(size_t)(e - from)] * (gets[(size_t)(e - from)] - mean));
      }
  }
  void judge() {
    compare("attended", y, [&](int r, int c) { return wantY(r, c); }, 1e-4);
    compare("stats", stats, [&](int r, int c) { return wantStats(r, c); }, 1e-4);
    compare("dx", dx, [&](int r, int c) { return wantDx(r, c); }, 4e-4);
  }
};

// hostile are scores of which those that count are far above or below what e^x has room
// for, and the larger come later.
double hostile(int i) { return (i % 3 - 1) * 200 + drawn(); }

}  // namespace

TEST(attend) {
  int kind = 0;
  for (const Shape &s : shapes) {
    Attention a(s, kind++ % 2 ? 0.4 : 0);
    int H = s.heads;
    Matrix<float> left(a.cols, H, false), right(a.rows, H), dleft(a.cols, H), dright(a.rows, H, false);
    left.fill([&](int r, int) { return kind % 3 ? drawn() : hostile(r); }), right.fill(any);
    Matrix<double> wantLeft(a.cols, H), wantRight(a.rows, H);
    for (auto m : {&wantLeft, &wantRight}) m->fill([](int, int) { return 0; });
    run("attend", s.grid(a.rows, true), a.y.data(), a.y.stride, a.stats.data(), a.stats.stride, a.rows, H, s.width, s.group(),
        a.g.indptr.data(), a.g.indices.data(), a.x.data(), a.x.stride, left.data(), left.stride, right.data(), right.stride, slope, a.key,
        a.ends(), a.own, a.threshold(), a.scale());
    run("attend_back_targets", s.grid(a.rows, false), a.known.data(), dright.data(), dright.stride, a.rows, H, s.width, s.group(),
        a.g.indptr.data(), a.g.indices.data(), a.dy.data(), a.dy.stride, a.stats.data(), a.stats.stride, a.x.data(), a.x.stride,
        left.data(), left.stride, right.data(), right.stride, slope, a.key, a.ends(), a.own, a.threshold(), a.scale());
    run("attend_back_sources", s.grid(a.cols, true), a.dx.data(), a.dx.stride, dleft.data(), dleft.stride, a.cols, H, s.width, s.group(),
        a.g.columns.data(), a.g.targets.data(), a.known.data(), a.dy.data(), a.dy.stride, a.x.data(), a.x.stride, left.data(),
        left.stride, slope, a.key, a.ends(), a.own, a.threshold(), a.scale());
    a.solve([&](int t, int source, int h) { return leaky((double)left(source, h) + right(t, h)); },
            [&](int t, int source, int h, double grad) {
              grad *= steep(left(source, h) + right(t, h));
              wantLeft(source, h) += grad, wantRight(t, h) += grad;
            });
    a.judge();
    compare("dleft", dleft, [&](int r, int c) { return wantLeft(r, c); }, 4e-4);
    compare("dright", dright, [&](int r, int c) { return wantRight(r, c); }, 4e-4);
  }
}

TEST(attend_v2) {
  int kind = 0;
  for (const Shape &s : shapes) {
    Attention a(s, kind++ % 2 ? 0.4 : 0);
    int H = s.heads, each = kind % 2 ? 8 : 16;
    unsigned blocks = s.grid(a.cols, true, each).x;
    Matrix<float> to(a.rows, a.columns, s.wide), by(1, a.columns, s.wide), dto(a.rows, a.columns, s.wide);
    Matrix<double> wantTo(a.rows, a.columns), wantA(1, a.columns);
    to.fill(any), by.fill([&](int, int c) { return kind % 3 || c % s.width ? drawn() : c % 2 ? 200 : -200; });
    wantTo.fill([](int, int) { return 0; }), wantA.fill([](int, int) { return 10; });
    Buffer<float> partial(blocks * (size_t)a.columns), da((size_t)a.columns);
    for (size_t c = 0; c < da.size(); c++) da[c] = 10;
    run("attend_v2", s.grid(a.rows, true), a.y.data(), a.y.stride, a.stats.data(), a.stats.stride, a.rows, H, s.width, s.group(),
        a.g.indptr.data(), a.g.indices.data(), a.x.data(), a.x.stride, to.data(), to.stride, by.data(), slope, a.key, a.ends(), a.own,
        a.threshold(), a.scale());
    run("attend_v2_back_targets", s.grid(a.rows, true), a.known.data(), dto.data(), dto.stride, a.rows, H, s.width, s.group(), a.g.indptr.data(), a.g.indices.data(), a.dy.data(), a.dy.stride, a.stats.data(), a.stats.stride, a.x.data(),
        a.x.stride, to.data(), to.stride, by.data(), slope, a.key, a.ends(), a.own, a.threshold(), a.scale());
    run("attend_v2_back_sources", s.grid(a.cols, true, each), a.dx.data(), a.dx.stride, partial.data(), a.cols, H, s.width, s.group(), each,
        a.g.columns.data(), a.g.targets.data(), a.known.data(), a.dy.data(), a.dy.stride, a.x.data(), a.x.stride, to.data(), to.stride, by.data(), slope,
        a.key, a.ends(), a.own, a.threshold(), a.scale());
    run("add_partials", {(unsigned)(a.columns + 31) / 32, 1, 1}, da.data(), partial.data(), (int)blocks, a.columns);
    auto sum = [&](int t, int source, int c) { return (double)(a.x(source, c) + to(t, c)); };
    a.solve(
        [&](int t, int source, int h) {
          double score = 0;
          for (int c = h * s.width; c < (h + 1) * s.width; c++) score += by(0, c) * leaky(sum(t, source, c));
          return score;
        },
        [&](int t, int source, int h, double grad) {
          for (int c = h * s.width; c < (h + 1) * s.width; c++) {
            double u = sum(t, source, c), back = grad * by(0, c) * steep(u);
            wantA(0, c) += grad * leaky(u);
            wantTo(t, c) += back, a.wantDx(source, c) += back;
          }
        });
    // What scores of 200 lose, gradients that are multiplied by 200 show.
    a.judge();
    compare("dto", dto, [&](int r, int c) { return wantTo(r, c); }, 4e-4);
    for (int c = 0; c < a.columns; c++) near("da", 0, c, da[(size_t)c], wantA(0, c), 4e-4);
  }
}
