// Gather: y[i] = the row of vertex ids[i], from the part that holds it: the last whose
// first vertex is not above the id. Types may differ between x and y.
//
// Launch: rows.h. Traffic: rows * cols elements read, as many written, 4 bytes an id.
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

template <bool Wide, class To, class From>
GK_DEVICE void copyRow(To *to, const From *from, int cols) {
  Columns<Wide> c(cols);
  float v[4];
  c.load(v, from);
  c.store(to, v);
}

template <class To, class From>
GK_DEVICE void gather(To *y, int64_t ldy, int rows, int cols, const Parts &parts, const uint32_t *ids) {
  int64_t row = rowOfWarp();
  if (row >= rows) return;
  uint32_t id = ids[row];
  int p = parts.find(id);
  int64_t stride = parts.stride[p];
  const From *x = (const From *)parts.base[p];
  const From *from = x + (int64_t)(id - parts.first[p]) * stride;
  if (wide(y, ldy) && wide(x, stride))
    copyRow<true>(y + row * ldy, from, cols);
  else
    copyRow<false>(y + row * ldy, from, cols);
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
