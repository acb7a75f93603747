// The tests of kernels on the emulator, each in several schedules. Arguments: names
// of tests, or their beginnings; none: all.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "test.h"

namespace test {

emulator::Schedule schedule;

namespace {

struct Case {
  std::string name;
  void (*run)();
};
std::vector<Case> &cases() {
  static std::vector<Case> all;
  return all;
}

// Two kinds of schedules show what one does not: a read that is overtaken by the
// next write is seen only where one warp runs ahead and copies land at once.
struct Named {
  const char *order, *copies;
};
constexpr Named schedules[] = {{"fwd", "late"}, {"rev", "eager"}, {"greedy", "eager"}, {"greedyrev", "late"}, {"greedyrev", "eager"}};

uint64_t state;
int failures;
std::string at;

}  // namespace

bool enter(const char *name, void (*run)()) {
  cases().push_back({name, run});
  return true;
}

void wrong(const char *format, ...) {
  if (failures++ >= 20) return;  // who reads more
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "%s: %s\n", at.c_str(), text);
}

double drawn() {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (double)(state >> 11) * 0x1p-52 - 1;
}

int below(int n) { return (int)((drawn() + 1) / 2 * n); }

void near(const char *what, int row, int col, double got, double want, double tolerance) {
  if (got == want || (isnan(got) && isnan(want))) return;
  if (!(fabs(got - want) <= tolerance * (1 + fabs(want)))) wrong("%s (%d, %d) is %.9g, want %.9g", what, row, col, got, want);
}

void compare(const char *what, Matrix<float> &got, const std::function<double(int, int)> &want, double tolerance) {
  for (int r = 0; r < got.rows; r++)
    for (int c = 0; c < got.cols; c++) near(what, r, c, got(r, c), want(r, c), tolerance);
  got.gaps(what);
}

uint16_t half(float f) {
  uint32_t u = std::bit_cast<uint32_t>(f);
  if (isnan(f)) return 0x7fc0;
  uint32_t rest = u & 0xffff, up = u >> 16;
  if (rest > 0x8000 || (rest == 0x8000 && up % 2)) up++;
  return (uint16_t)up;
}

std::string launch(const char *name, emulator::Dim grid, std::vector<uint64_t> arguments) {
  auto k = emulator::kernels().find(name);
  if (k == emulator::kernels().end()) return std::string("no kernel ") + name;
  if (arguments.size() != k->second.sizes.size()) return std::string(name) + ": wrong number of arguments";
  std::vector<void *> parameters;
  for (auto &a : arguments) parameters.push_back(&a);
  return emulator::launch(k->second, grid, {k->second.threads, 1, 1}, parameters.data(), schedule);
}

}  // namespace test

int main(int argc, char **argv) {
  int ran = 0, failed = 0;
  for (auto &c : test::cases()) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; i++) wanted |= c.name.starts_with(argv[i]);
    if (!wanted) continue;
    for (auto &s : test::schedules) {
      if (!emulator::parse(s.order, s.copies, test::schedule)) abort();
      test::at = c.name + " in " + s.order + "/" + s.copies;
      test::state = 1;
      test::failures = 0;
      c.run();
      ran++;
      failed += test::failures > 0;
    }
  }
  if (!ran) fprintf(stderr, "no such test\n");
  else printf("%d runs of tests, %d failed\n", ran, failed);
  return ran && !failed ? 0 : 1;
}
