// rows.h: the launch that most kernels share. A block is 8 warps, a warp has one row
// and 128 columns of it: the grid is (rows/8, cols/128), both rounded up. A lane has
// four columns: next to each other where rows are aligned and have whole fours, so that
// a warp moves 512 bytes an instruction; else 32 apart, and every row works.
#pragma once
#include "epilogue.h"

namespace gk {

constexpr int warpsOfBlock = 8, columnsOfWarp = 128;

// Wide says whether a lane's columns are next to each other: cols is a multiple of 4, and
// all rows begin at one of 4 elements (wide). Lanes beyond the last column read the warp's
// first four then, so that all lanes do the same.
template <bool Wide>
struct Columns {
  int first, cols, read;

  GK_MEMBER Columns(int cols)
      : first((int)blockY() * columnsOfWarp + (int)lane() * (Wide ? 4 : 1)), cols(cols),
        read(first < cols ? first : (int)blockY() * columnsOfWarp) {}
  GK_MEMBER int at(int i) const { return first + i * (Wide ? 1 : 32); }
  GK_MEMBER bool has(int i) const { return at(i) < cols; }

  // load reads the lane's columns of a row that nobody writes; those beyond get something.
  GK_MEMBER void load(float v[4], const float *row) const {
    if (Wide) {
      Float4 f = load4(row + read);
      v[0] = f.x, v[1] = f.y, v[2] = f.z, v[3] = f.w;
      return;
    }
    GK_UNROLL for (int i = 0; i < 4; i++) v[i] = has(i) ? row[at(i)] : 0.f;
  }
  GK_MEMBER void load(float v[4], const uint16_t *row) const {
    if (Wide) {
      UInt2 u = load4(row + read);
      v[0] = asFloat(u.x << 16), v[1] = asFloat(u.x & 0xffff0000u);
      v[2] = asFloat(u.y << 16), v[3] = asFloat(u.y & 0xffff0000u);
      return;
    }
    GK_UNROLL for (int i = 0; i < 4; i++) v[i] = has(i) ? widen(row[at(i)]) : 0.f;
  }
  // loadMutable is load of a row that this kernel writes, too.
  GK_MEMBER void loadMutable(float v[4], const float *row) const {
    if (Wide) {
      Float4 f = loadMutable4(row + read);
      v[0] = f.x, v[1] = f.y, v[2] = f.z, v[3] = f.w;
      return;
    }
    GK_UNROLL for (int i = 0; i < 4; i++) v[i] = has(i) ? row[at(i)] : 0.f;
  }
  GK_MEMBER void loadMutable(float v[4], const uint16_t *row) const {
    if (Wide) {
      UInt2 u = loadMutable4(row + read);
      v[0] = asFloat(u.x << 16), v[1] = asFloat(u.x & 0xffff0000u);
      v[2] = asFloat(u.y << 16), v[3] = asFloat(u.y & 0xffff0000u);
      return;
    }
    GK_UNROLL for (int i = 0; i < 4; i++) v[i] = has(i) ? widen(row[at(i)]) : 0.f;
  }

  GK_MEMBER void store(float *row, const float v[4]) const {
    if (Wide) {
      if (first < cols) store4(row + first, Float4{v[0], v[1], v[2], v[3]});
      return;
    }
    GK_UNROLL for (int i = 0; i < 4; i++)
      if (has(i)) row[at(i)] = v[i];
  }
  GK_MEMBER void store(uint16_t *row, const float v[4]) const {
    if (Wide) {
      uint32_t low = narrow(v[0]) | (uint32_t)narrow(v[1]) << 16;
      uint32_t high = narrow(v[2]) | (uint32_t)narrow(v[3]) << 16;
      if (first < cols) store4(row + first, UInt2{low, high});
      return;
    }
    GK_UNROLL for (int i = 0; i < 4; i++)
      if (has(i)) row[at(i)] = narrow(v[i]);
  }

  // finish applies an epilogue to a row's four.
  GK_MEMBER void finish(float v[4], const Epilogue &e, int64_t row) const {
    uint64_t k = rowKey(e, row);
    GK_UNROLL for (int i = 0; i < 4; i++)
      if (has(i)) v[i] = gk::finish(e, v[i], k, at(i));
  }
};

// rowOfWarp is the warp's row; one at or above the last is none.
GK_DEVICE int64_t rowOfWarp() { return (int64_t)blockX() * warpsOfBlock + warp(); }

// wide says whether four elements at any multiple of 4 of any row can be had at once.
template <class T>
GK_DEVICE bool wide(const T *base, int64_t stride) {
  return aligned(base, stride * (int64_t)sizeof(T), 4 * (int)sizeof(T));
}

}  // namespace gk
