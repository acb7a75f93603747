// Draw and mean: y[t] = the mean, or the weighted sum, of the rows of x of what is
// drawn for target t: what draw.cu and aggregate.cu make with a block between them,
// to the bit, without one. For the outermost hop, whose rows get no gradient and so
// need no numbers. x has the rows of all vertices, and a fan-out is at most 32, as
// many as there are lanes, or 0.
//
// Launch: rows.h, for as many targets as there may be. Traffic: entries * cols
// elements of x, targets * cols floats of y written; the graph's as draw.cu, for each
// 128 columns.
#include "draw.h"
#include "entries.h"

using namespace gk;

namespace {

template <bool Wide, class T>
GK_DEVICE void drawMean(float *y, int64_t ldy, int cols, const int64_t *targets, const uint32_t *vertices, const Graph &g, int fanout,
                        const uint64_t *hop, const T *x, int64_t ldx, int mean, int valued) {
  int64_t t = rowOfWarp();
  if (t >= *targets) return;
  Columns<Wide> c(cols);
  uint32_t v = vertices[t];
  Row r = rowOf(g, v, fanout);
  float own = g.inverse ? g.inverse[v] : 1.f, scale = scaleOf(r), sum[4] = {};
  if (r.loop) addRows<1>(sum, c, 1, (int)v, valued ? loopValue(g, own) : 1.f, x, ldx);
  uint64_t key = childKey(*hop, v);
  for (int first = 0; first < r.drawn; first += 32) {
    int n = r.drawn - first < 32 ? r.drawn - first : 32, mine = 0;
    float weight = 0.f;
    int64_t at = first + (int)lane();
    if (r.drawn < r.degree) at = positionOf(key, r, 0, nullptr);
    if ((int)lane() < n) {
      mine = g.indices[r.from + at];
      weight = valued ? valueOf(g, scale, own, r.from + at, (uint32_t)mine) : 1.f;
    }
    addRows<4>(sum, c, n, mine, weight, x, ldx);
  }
  int entries = r.drawn + r.loop;
  float share = mean && entries > 0 ? 1.f / (float)entries : 1.f;
  GK_UNROLL for (int i = 0; i < 4; i++) sum[i] = fused(sum[i], share, 0.f);
  c.store(y + t * ldy, sum);
}

}  // namespace

// x is float. With valued, rows count with the values that draw_sources gives them.
KERNEL_BESIDE(draw_mean_f32, 256, 4, float *y, int64_t ldy, int cols, const int64_t *targets, const uint32_t *vertices, GRAPH, int fanout,
       const uint64_t *hop, const float *x, int64_t ldx, int mean, int valued) {
  if (cols % 4 == 0 && wide(y, ldy) && wide(x, ldx)) drawMean<true>(y, ldy, cols, targets, vertices, GRAPH_GIVEN, fanout, hop, x, ldx, mean, valued);
  else drawMean<false>(y, ldy, cols, targets, vertices, GRAPH_GIVEN, fanout, hop, x, ldx, mean, valued);
}

// x is bf16.
KERNEL_BESIDE(draw_mean_bf16, 256, 4, float *y, int64_t ldy, int cols, const int64_t *targets, const uint32_t *vertices, GRAPH, int fanout,
       const uint64_t *hop, const uint16_t *x, int64_t ldx, int mean, int valued) {
  if (cols % 4 == 0 && wide(y, ldy) && wide(x, ldx)) drawMean<true>(y, ldy, cols, targets, vertices, GRAPH_GIVEN, fanout, hop, x, ldx, mean, valued);
  else drawMean<false>(y, ldy, cols, targets, vertices, GRAPH_GIVEN, fanout, hop, x, ldx, mean, valued);
}
