// draw.h: which of a vertex's in-edges are drawn: what engine/sample draws, bit for
// bit. A warp has a vertex. The draws of a vertex are known each by itself; what
// depends on those before is only whether a position is taken already.
#pragma once
#include "keyed.h"

// GRAPH are the parameters of a kernel that reads the graph: the in-edges of all
// vertices; weights null: all 1; loops, a bit for each vertex with an edge from itself,
// null: no self-loops are added; inverse, 1/sqrt(degree) of all, null: not normalised.
#define GRAPH \
  const int64_t *indptr, const int32_t *indices, const float *weights, const uint64_t *loops, const float *inverse
#define GRAPH_GIVEN \
  gk::Graph { indptr, indices, weights, loops, inverse }

namespace gk {

struct Graph {
  const int64_t *indptr;
  const int32_t *indices;
  const float *weights;
  const uint64_t *loops;
  const float *inverse;
};

// A Row is a target: its in-edges begin at from, of degree of them some are drawn, and
// a self-loop may stand before them.
struct Row {
  int64_t from;
  int degree, drawn;
  bool loop;
};

GK_DEVICE Row rowOf(const Graph &g, uint32_t v, int fanout) {
  Row r;
  r.from = g.indptr[v];
  r.degree = (int)(g.indptr[v + (uint64_t)1] - r.from);
  r.drawn = fanout == 0 || r.degree <= fanout ? r.degree : fanout;
  r.loop = g.loops && (g.loops[v / 64] >> (v % 64) & 1) == 0;
  return r;
}

// positionOf is what draw first + lane of a row is, for 32 draws at a time, by Floyd's
// way: draw i of k is below n-k+i+1, and stands for the last of these if it came
// before. Nothing that came before is as large as that. earlier are the draws before
// first. Lanes beyond the last draw get something.
GK_DEVICE uint32_t positionOf(uint64_t key, const Row &r, int first, const int32_t *earlier) {
  int i = first + (int)lane();
  uint32_t last = (uint32_t)(r.degree - r.drawn + i);
  uint64_t sequence = key + (uint64_t)i * 0xa0761d6478bd642full;  // nextDraw i times
  uint32_t p = (uint32_t)drawBelow(sequence, (uint64_t)last + 1);
  for (int j = 0; j < first; j++)
    if ((uint32_t)earlier[j] == p) p = last;
  int n = r.drawn - first < 32 ? r.drawn - first : 32;
  for (int j = 0; j < n; j++) {
    uint32_t other = shuffle(p, j);
    if ((int)lane() > j && other == p) p = last;
  }
  return p;
}

// scaleOf makes a sample of a row stand for all of it.
GK_DEVICE float scaleOf(const Row &r) { return r.drawn < r.degree ? (float)r.degree / (float)r.drawn : 1.f; }

// valueOf is the value of the edge at this place of the graph, own being the target's
// 1/sqrt(degree).
GK_DEVICE float valueOf(const Graph &g, float scale, float own, int64_t at, uint32_t source) {
  float value = g.weights ? scale * g.weights[at] : scale;
  return g.inverse ? value * (own * g.inverse[source]) : value;
}

// loopValue is that of the self-loop that is added to v.
GK_DEVICE float loopValue(const Graph &g, float own) { return g.inverse ? own * own : 1.f; }

}  // namespace gk
