// Draw: the rows of a hop's targets: how many entries each has, and, once these are
// summed up (scan.cu), which. The order is engine/sample's: the self-loop that is
// added, if one is, then the drawn in the order of their draws, or all in the graph's.
//
// Launch: draw_counts as scan.h; draw_sources blocks of 256, a warp a target. Both
// for as many targets as there may be: how many there are stands in memory.
// Traffic: draw_counts 28 bytes a target; draw_sources that and 8 bytes an entry,
// scattered, 12 more with values.
#include "draw.h"
#include "scan.h"

using namespace gk;

// draw_counts sets counts[t] to the number of entries of target t, and partial to the
// tiles' sums.
KERNEL(draw_counts, 256, int64_t *counts, int64_t *partial, const int64_t *targets, const uint32_t *vertices, GRAPH, int fanout) {
  SHARED(Totals, totals);
  int64_t end = *targets, first = firstOfThread(), mine = 0;
  if ((int64_t)blockX() * tile > end) return;
  for (int i = 0; i < ofThread && first + i < end; i++) {
    Row r = rowOf(GRAPH_GIVEN, vertices[first + i], fanout);
    counts[first + i] = r.drawn + r.loop;
    mine += r.drawn + r.loop;
  }
  sumOfTile(partial, totals, mine);
}

// draw_sources writes the sources of each target, by their ids, from bounds[t] on, and
// their values, if values is not null. entries is how many there are of all: with
// none, as where they are too many for the memory, it writes nothing.
KERNEL(draw_sources, 256, int32_t *sources, float *values, const int64_t *bounds, const int64_t *targets, const int64_t *entries,
       const uint32_t *vertices, GRAPH, int fanout, const uint64_t *hop) {
  int64_t t = (int64_t)blockX() * 8 + warp();
  if (t >= *targets || *entries == 0) return;
  uint32_t v = vertices[t];
  Graph g = GRAPH_GIVEN;
  Row r = rowOf(g, v, fanout);
  float own = inverse ? inverse[v] : 1.f, scale = scaleOf(r);
  int64_t at = bounds[t] + r.loop;
  int32_t *to = sources + at;
  if (r.loop && lane() == 0) {
    to[-1] = (int32_t)v;
    if (values) values[at - 1] = loopValue(g, own);
  }
  if (r.drawn < r.degree) {
    uint64_t key = childKey(*hop, v);
    for (int first = 0; first < r.drawn; first += 32) {
      uint32_t p = positionOf(key, r, first, to);
      if (first + (int)lane() < r.drawn) to[first + lane()] = (int32_t)p;
      warpBarrier();  // the next read these
    }
  }
  for (int i = (int)lane(); i < r.drawn; i += 32) {
    int64_t from = r.from + (r.drawn < r.degree ? to[i] : i);
    uint32_t source = (uint32_t)indices[from];
    to[i] = (int32_t)source;
    if (values) values[at + i] = valueOf(g, scale, own, from, source);
  }
}
