// Gather: y[i] = the row of vertex ids[i], from the part that holds it: the last whose
// first vertex is not above the id. Types may differ between x and y.
//
// Launch: a warp has four rows and 128 columns, whose rows are in flight together: the
// grid is (rows/32, cols/128), both rounded up. Traffic: rows * cols elements read, as
// many written, 4 bytes an id.
#include "rows.h"

using namespace gk;

namespace {

// The parts, as arrays of the device: first vertices, addresses, strides in elements.
struct Parts {
  const uint32_t *first;
  const uint64_t *base;
  const int64_t *stride;
  int count;

  // find is the last part whose first vertex is not above id.
  GK_MEMBER int find(uint32_t id) const {
    int low = 0, high = count - 1;
    while (low < high) {
      int middle = (low + high + 1) / 2;
      if (first[middle] <= id) low = middle;
      else high = middle - 1;
    }
    return low;
  }
};

constexpr int rowsOfWarp = 4;

// copyRows copies rows that begin where the first lanes say.
template <bool Wide, class To, class From>
GK_DEVICE void copyRows(To *to, int64_t ldy, int64_t rows, int cols, uint64_t from) {
  Columns<Wide> c(cols);
  float v[rowsOfWarp][4];
  GK_UNROLL for (int k = 0; k < rowsOfWarp; k++) {
    uint64_t row = shuffle((uint32_t)from, k) | (uint64_t)shuffle((uint32_t)(from >> 32), k) << 32;
    if (k < rows) c.load(v[k], (const From *)row);
  }
  GK_UNROLL for (int k = 0; k < rowsOfWarp; k++)
    if (k < rows) c.store(to + k * ldy, v[k]);
}

template <class To, class From>
GK_DEVICE void gather(To *y, int64_t ldy, int rows, int cols, const Parts &parts, const uint32_t *ids) {
  int64_t first = rowOfWarp() * rowsOfWarp, left = rows - first;
  if (left <= 0) return;
  uint64_t from = 0;
  bool odd = cols % 4 != 0 || !wide(y, ldy);
  if ((int)lane() < rowsOfWarp && (int)lane() < left) {
    uint32_t id = ids[first + lane()];
    int p = parts.find(id);
    int64_t stride = parts.stride[p];
    const From *x = (const From *)parts.base[p];
    from = (uint64_t)(x + (int64_t)(id - parts.first[p]) * stride);
    odd |= !wide(x, stride);
  }
  if (votes(odd)) copyRows<false, To, From>(y + first * ldy, ldy, left, cols, from);
  else copyRows<true, To, From>(y + first * ldy, ldy, left, cols, from);
}

}  // namespace

// x and y are float. The four kernels differ in types only: gather_to_from.
KERNEL(gather_f32_f32, 256, float *y, int64_t ldy, int rows, int cols, const uint32_t *first, const uint64_t *base, const int64_t *stride,
       int parts, const uint32_t *ids) {
  gather<float, float>(y, ldy, rows, cols, {first, base, stride, parts}, ids);
}

KERNEL(gather_f32_bf16, 256, float *y, int64_t ldy, int rows, int cols, const uint32_t *first, const uint64_t *base, const int64_t *stride,
       int parts, const uint32_t *ids) {
  gather<float, uint16_t>(y, ldy, rows, cols, {first, base, stride, parts}, ids);
}

KERNEL(gather_bf16_f32, 256, uint16_t *y, int64_t ldy, int rows, int cols, const uint32_t *first, const uint64_t *base,
       const int64_t *stride, int parts, const uint32_t *ids) {
  gather<uint16_t, float>(y, ldy, rows, cols, {first, base, stride, parts}, ids);
}

KERNEL(gather_bf16_bf16, 256, uint16_t *y, int64_t ldy, int rows, int cols, const uint32_t *first, const uint64_t *base,
       const int64_t *stride, int parts, const uint32_t *ids) {
  gather<uint16_t, uint16_t>(y, ldy, rows, cols, {first, base, stride, parts}, ids);
}
