// test.h: what the tests of kernels share. A test runs once in each schedule. Its
// operands are buffers of exactly their size, whose elements between rows are NaN and
// must stay so: the address sanitizer and these find what is read or written beside.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <bit>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "../launch.h"

namespace test {

bool enter(const char *name, void (*run)());
extern emulator::Schedule schedule;

// wrong notes a failure; a test goes on.
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

// drawn is a number of [-1, 1), below one less than n. Each test begins anew.
double drawn();
int below(int n);

// near compares with what is right, by a share of it and of 1.
void near(const char *what, int row, int col, double got, double want, double tolerance);

// Buffer is memory of exactly n elements, which begin as the bytes of a NaN.
template <class T>
class Buffer {
 public:
  // The memory ends where the elements do; they begin shift elements behind a
  // multiple of 16 bytes.
  explicit Buffer(size_t n, size_t shift = 0) : n_(n) {
    size_t bytes = (n + shift) * sizeof(T);
    base_ = static_cast<char *>(malloc(bytes ? bytes : 1));
    at_ = reinterpret_cast<T *>(base_) + shift;
    memset(static_cast<void *>(base_), 0xff, bytes);
  }
  ~Buffer() { free(base_); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  T *data() { return at_; }
  T &operator[](size_t i) { return at_[i]; }
  size_t size() const { return n_; }

 private:
  size_t n_;
  char *base_;
  T *at_;
};

// A Matrix is rows of a buffer. Wide ones can be had four elements at once, others
// begin and go on at odd places.
template <class T>
struct Matrix {
  int rows, cols;
  int64_t stride;
  Buffer<T> buffer;

  Matrix(int rows, int cols, bool wide = true)
      : rows(rows), cols(cols), stride(wide ? (cols + 3) / 4 * 4 + 4 : cols + 3 + cols % 2), buffer(rows ? (size_t)(rows - 1) * (size_t)stride + (size_t)cols : 0, wide ? 0 : 1) {}
  T &operator()(int r, int c) { return buffer[(size_t)r * (size_t)stride + (size_t)c]; }
  T *data() { return buffer.data(); }

  void fill(const std::function<double(int, int)> &f);
  // gaps says that what lies between rows is as it was.
  void gaps(const char *what) {
    for (int r = 0; r + 1 < rows; r++)
      for (int64_t c = cols; c < stride; c++) {
        unsigned char bytes[sizeof(T)];
        memcpy(bytes, &buffer[(size_t)r * (size_t)stride + (size_t)c], sizeof(T));
        for (unsigned char b : bytes)
          if (b != 0xff) return wrong("%s: row %d: something was written behind its end", what, r);
      }
  }
};

uint16_t half(float f);
inline float full(uint16_t h) { return std::bit_cast<float>((uint32_t)h << 16); }

template <class T>
void Matrix<T>::fill(const std::function<double(int, int)> &f) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < cols; c++) {
      if constexpr (std::is_same_v<T, uint16_t>) (*this)(r, c) = half((float)f(r, c));
      else (*this)(r, c) = (T)f(r, c);
    }
}

inline double any(int, int) { return drawn(); }

// compare compares all elements.
void compare(const char *what, Matrix<float> &got, const std::function<double(int, int)> &want, double tolerance);

template <class A>
uint64_t box(A a) {
  if constexpr (std::is_pointer_v<A>) return reinterpret_cast<uint64_t>(a);
  else if constexpr (std::is_same_v<A, std::nullptr_t>) return 0;
  else if constexpr (std::is_same_v<A, float>) return std::bit_cast<uint32_t>(a);
  else {
    static_assert(std::is_integral_v<A>, "a kernel takes pointers, floats and whole numbers");
    return (uint64_t)a;
  }
}

std::string launch(const char *name, emulator::Dim grid, std::vector<uint64_t> arguments);

// run launches a kernel in whole blocks, and notes what goes wrong.
template <class... A>
void run(const char *name, emulator::Dim grid, A... arguments) {
  if (!grid.x || !grid.y || !grid.z) return;
  std::string error = launch(name, grid, {box(arguments)...});
  if (!error.empty()) wrong("%s", error.c_str());
}

// by_rows is the grid of rows.h.
inline emulator::Dim by_rows(int rows, int cols) { return {(unsigned)(rows + 7) / 8, (unsigned)(cols + 127) / 128, 1}; }

}  // namespace test

#define TEST(name)                                                                           \
  static void test_##name();                                                                 \
  [[maybe_unused]] static const bool entered_test_##name = test::enter(#name, test_##name);  \
  static void test_##name()
