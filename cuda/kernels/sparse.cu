// Sparse features: the rows of a CSR as a dense matrix, and dropout of its values.
//
// Launch: densify blocks of 256, drop_values too, a warp a row, rows/8 blocks rounded
// up. Traffic: 8 bytes an entry, from and to; densify writes every element.
#include "epilogue.h"

using namespace gk;

// densify writes the rows as a dense matrix; entries of one place are added up in
// their order, which a lane has for itself: columns go round the lanes. values may be
// null: all 1.
KERNEL(densify, 256, float *y, int64_t ldy, int rows, int cols, const int64_t *indptr, const int32_t *indices, const float *values) {
  int64_t row = (int64_t)blockX() * 8 + warp();
  if (row >= rows) return;
  float *to = y + row * ldy;
  for (int c = (int)lane(); c < cols; c += 32) to[c] = 0.f;
  for (int64_t at = indptr[row]; at < indptr[row + 1]; at++) {
    int c = indices[at];
    if (c % 32 == (int)lane()) to[c] += values ? values[at] : 1.f;
  }
}

// drop_values is to[i] = from[i], or 1 where from is null, dropped or scaled up: the
// vertex is that of the row, the column that of the entry. from and to begin at the
// CSR's first entry.
KERNEL(drop_values, 256, float *to, const float *from, int rows, const int64_t *indptr, const int32_t *indices, uint64_t key,
       const uint32_t *vertices, uint32_t threshold, float scale) {
  int64_t row = (int64_t)blockX() * 8 + warp();
  if (row >= rows) return;
  Epilogue e = {nullptr, Linear, key, vertices, threshold, scale};
  uint64_t k = rowKey(e, row);
  int64_t start = indptr[0];
  for (int64_t at = indptr[row] + lane(); at < indptr[row + 1]; at += 32)
    to[at - start] = dropped(e, from ? from[at - start] : 1.f, k, indices[at]);
}
