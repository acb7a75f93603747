#include "test.h"

using namespace test;

namespace {

struct Tally {
  double loss;
  int64_t right;
};

// The loss of a row in double; gradient in g.
double loss(bool binary, const std::vector<double> &z, int label, std::vector<double> &g) {
  double largest = -INFINITY, sum = 0, all = 0;
  for (double v : z) largest = fmax(largest, v);
  for (double v : z) sum += exp(v - largest);
  for (size_t c = 0; c < z.size(); c++) {
    bool own = (int)c == label;
    if (binary) {
      all += fmax(z[c], 0) + log1p(exp(-fabs(z[c]))) - (own ? z[c] : 0);
      g[c] = 1 / (1 + exp(-z[c])) - own;
    } else {
      g[c] = exp(z[c] - largest) / sum - own;
    }
  }
  return binary ? all : log(sum) + largest - z[(size_t)label];
}

// Logits of +200 lie in the later columns: a maximum that is taken too early shows as
// an overflow, while any that is taken right gives the same softmax.
void losses(const char *kernel, bool binary) {
  for (int rows : {1, 9, 30})
    for (int cols : {1, 7, 32, 70}) {
      Matrix<float> z(rows, cols, false), dz(rows, cols);
      z.fill([&](int r, int c) { return r % 3 == 1 && c == cols - 1 ? 200 + drawn() : r % 3 == 2 ? below(3) : 4 * drawn(); });
      Buffer<int32_t> labels((size_t)rows);
      for (int r = 0; r < rows; r++) labels[(size_t)r] = r % 5 == 4 ? -1 : r % 2 ? cols - 1 : below(cols);
      Tally want{0, 0};
      Matrix<float> gradient(rows, cols);
      float scale = 0.25f;
      for (int r = 0; r < rows; r++) {
        std::vector<double> row, g((size_t)cols, 0.0);
        for (int c = 0; c < cols; c++) row.push_back(z(r, c));
        int label = labels[(size_t)r], best = 0;
        if (label >= 0) {
          want.loss += loss(binary, row, label, g);
          for (int c = 1; c < cols; c++)
            if (row[(size_t)c] > row[(size_t)best]) best = c;
          want.right += best == label;
        }
        for (int c = 0; c < cols; c++) gradient(r, c) = (float)(scale * g[(size_t)c]);
      }
      for (int way = 0; way < 3; way++) {  // with a gradient, without, in place
        Tally tallies[2], sum{1000, 7};
        float *to = way == 0 ? dz.data() : way == 1 ? nullptr : z.data();
        run(kernel, {2, 1, 1}, &tallies[0], to, way == 2 ? z.stride : dz.stride, z.data(), z.stride, labels.data(), rows, cols, scale);
        run("add_tallies", {1, 1, 1}, &sum, &tallies[0], 2);
        near("the loss", rows, cols, sum.loss - 1000, want.loss, 2e-6);
        near("how many are right", rows, cols, (double)sum.right - 7, (double)want.right, 0);
        if (way != 1) compare("the gradient", way == 0 ? dz : z, [&](int r, int c) { return gradient(r, c); }, 1e-6);
      }
    }
}

}  // namespace

TEST(cross_entropy) { losses("cross_entropy", false); }
TEST(binary_cross_entropy) { losses("binary_cross_entropy", true); }

// As many tallies as lanes, fewer, and more.
TEST(add_tallies) {
  for (int n : {1, 31, 32, 33, 100}) {
    Buffer<Tally> tallies((size_t)n);
    Tally sum{1000, 7}, want = sum;
    for (size_t i = 0; i < (size_t)n; i++) {
      tallies[i] = {drawn(), below(9)};
      want.loss += tallies[i].loss, want.right += tallies[i].right;
    }
    run("add_tallies", {1, 1, 1}, &sum, tallies.data(), n);
    near("the loss", n, 0, sum.loss, want.loss, 1e-12);
    near("how many are right", n, 0, (double)sum.right, (double)want.right, 0);
  }
}

TEST(adam) {
  for (bool decoupled : {false, true}) {
    const size_t n = 300;
    Buffer<float> w(n), g(n), m(n), v(n);
    std::vector<double> rw, rm, rv;
    double rate = 0.01, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0.1;
    for (size_t i = 0; i < n; i++) {
      w[i] = (float)drawn(), m[i] = v[i] = 0;
      rw.push_back(w[i]), rm.push_back(0), rv.push_back(0);
    }
    for (int step = 1; step <= 3; step++) {
      double c1 = 1 - pow(beta1, step), c2 = 1 - pow(beta2, step);
      for (size_t i = 0; i < n; i++) g[i] = (float)drawn();
      run("adam", {2, 1, 1}, w.data(), g.data(), m.data(), v.data(), n, (float)rate, (float)beta1, (float)(1 - beta1), (float)beta2,
          (float)(1 - beta2), (float)epsilon, (float)decay, decoupled, (float)c1, (float)c2);
      for (size_t i = 0; i < n; i++) {
        double x = g[i] + (decoupled ? 0 : decay * rw[i]), before = rw[i];
        rm[i] = beta1 * rm[i] + (1 - beta1) * x;
        rv[i] = beta2 * rv[i] + (1 - beta2) * x * x;
        rw[i] -= rate * (rm[i] / c1) / (sqrt(rv[i] / c2) + epsilon) + (decoupled ? rate * decay * before : 0);
        near("adam", step, (int)i, w[i], rw[i], 1e-6);
        near("its first moment", step, (int)i, m[i], rm[i], 1e-6);
        near("its second moment", step, (int)i, v[i], rv[i], 1e-6);
      }
    }
  }
}

TEST(sgd) {
  const size_t n = 257;
  for (float momentum : {0.f, 0.9f})
    for (bool kept : {false, true}) {
      if (momentum != 0 && !kept) continue;
      Buffer<float> w(n), g(n), m(n);
      for (size_t i = 0; i < n; i++) {
        w[i] = (float)drawn(), g[i] = (float)drawn();
        if (momentum != 0) m[i] = (float)drawn();
      }
      std::vector<double> want;
      for (size_t i = 0; i < n; i++) want.push_back(g[i] + 0.1 * w[i] + (momentum != 0 ? (double)momentum * m[i] : 0));
      std::vector<double> before(w.data(), w.data() + n);
      run("sgd", {2, 1, 1}, w.data(), g.data(), kept ? m.data() : (float *)nullptr, n, 0.5f, momentum, 0.1f);
      for (size_t i = 0; i < n; i++) {
        near("sgd", 0, (int)i, w[i], before[i] - 0.5 * want[i], 1e-6);
        if (kept) near("its momentum", 0, (int)i, m[i], want[i], 1e-6);
      }
    }
}
