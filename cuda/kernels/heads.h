// heads.h: the launch of what goes head by head. A row has `heads` heads of `width`
// columns, one after the other. A head is shared by `group` lanes, the smallest power of
// 2 that gives each of them at most four columns, or all 32: so a warp has 32/group heads
// of a row, and a sum over a head's columns is a butterfly among its lanes, the same bits
// in each. A head of more than 128 columns is several tiles of 128.
//
// Launch: blocks of 256, grid (rows/8, heads/(32/group)), both rounded up; of kernels
// that are tiled, with as many times that second number as a head has tiles.
#pragma once
#include "rows.h"

namespace gk {

// Wide says whether a lane's columns are next to each other, else they are `group` apart.
template <bool Wide>
struct Heads {
  int heads, width, group;
  int tiles, tile;  // of a head, and which of them is the warp's
  int head;         // the lane's; one at or above heads is none
  int place;        // of the lane's first column in a tile

  GK_MEMBER Heads(int heads, int width, int group, bool tiled)
      : heads(heads), width(width), group(group), tiles(width > columnsOfWarp ? (width + columnsOfWarp - 1) / columnsOfWarp : 1),
        tile(tiled ? (int)blockY() % tiles : 0),
        head((tiled ? (int)blockY() / tiles : (int)blockY()) * (32 / group) + (int)lane() / group),
        place(((int)lane() & (group - 1)) * (Wide ? 4 : 1)) {}

  GK_MEMBER bool mine() const { return head < heads; }
  // first says whether the lane is its head's first, of the first tile: it writes what
  // there is one of.
  GK_MEMBER bool first() const { return mine() && place == 0 && tile == 0; }
  // at is a column in its head.
  GK_MEMBER int at(int tile, int i) const { return tile * columnsOfWarp + place + i * (Wide ? 1 : group); }
  GK_MEMBER bool has(int tile, int i) const { return mine() && at(tile, i) < width; }

  // load reads the lane's columns in a tile of a row that nobody writes; those that are
  // not there are 0. Where Wide, the width is a multiple of 4.
  GK_MEMBER void load(float v[4], const float *row, int tile) const {
    const float *from = row + (int64_t)head * width;
    if (Wide) {
      Float4 f = {0.f, 0.f, 0.f, 0.f};
      if (has(tile, 0)) f = load4(from + at(tile, 0));
      v[0] = f.x, v[1] = f.y, v[2] = f.z, v[3] = f.w;
      return;
    }
    GK_UNROLL for (int i = 0; i < 4; i++) v[i] = has(tile, i) ? from[at(tile, i)] : 0.f;
  }
  // store writes those of the warp's tile.
  GK_MEMBER void store(float *row, const float v[4]) const {
    float *to = row + (int64_t)head * width;
    if (Wide) {
      if (has(tile, 0)) store4(to + at(tile, 0), Float4{v[0], v[1], v[2], v[3]});
      return;
    }
    GK_UNROLL for (int i = 0; i < 4; i++)
      if (has(tile, i)) to[at(tile, i)] = v[i];
  }

  // number is the head's in a row of one for each.
  GK_MEMBER float number(const float *row) const { return mine() ? row[head] : 0.f; }

  // sum is that over the lanes of the head.
  GK_MEMBER float sum(float v) const {
    for (int d = group >> 1; d; d >>= 1) v += shuffleXor(v, d);
    return v;
  }

  // product is that of two rows over the columns of the head, of which a and b are the
  // warp's tile. Others says whether there may be others.
  template <bool Others>
  GK_MEMBER float product(const float a[4], const float b[4], const float *rowA, const float *rowB) const {
    float p = 0.f;
    GK_UNROLL for (int i = 0; i < 4; i++) p = fused(a[i], b[i], p);
    GK_ROLLED for (int t = 0; Others && t < tiles; t++) {
      if (t == tile) continue;
      float v[4], w[4];
      load(v, rowA, t);
      load(w, rowB, t);
      GK_UNROLL for (int i = 0; i < 4; i++) p = fused(v[i], w[i], p);
    }
    return sum(p);
  }
};

// wideHeads says whether four columns of any head can be had at once.
GK_DEVICE bool wideHeads(const float *base, int64_t stride, int width) { return width % 4 == 0 && wide(base, stride); }

}  // namespace gk
