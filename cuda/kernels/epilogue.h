// epilogue.h: what happens to a result as it is stored, in this order: bias,
// activation, keyed dropout (tensor.Epilogue), and the way back.
#pragma once
#include "keyed.h"

// EPILOGUE are the parameters of a kernel that has one. bias may be null. Activation
// is tensor.Activation's number. An element is dropped where the bits of its column
// under key.With(vertices[row]) are below threshold, and else multiplied by scale;
// without dropout the threshold is 0, the scale 1, and vertices may be null.
#define EPILOGUE \
  const float *bias, int activation, uint64_t key, const uint32_t *vertices, uint32_t threshold, float scale
#define EPILOGUE_GIVEN \
  gk::Epilogue { bias, activation, key, vertices, threshold, scale }

namespace gk {

enum Activation { Linear, ReLU, ELU };

struct Epilogue {
  const float *bias;
  int activation;
  uint64_t key;
  const uint32_t *vertices;
  uint32_t threshold;
  float scale;
};

// rowKey is the key of a row, asked for once a row.
GK_DEVICE uint64_t rowKey(const Epilogue &e, int64_t row) {
  return e.threshold ? childKey(e.key, e.vertices[row]) : 0;
}

// dropped is x as it is kept, or 0.
GK_DEVICE float dropped(const Epilogue &e, float x, uint64_t row, int column) {
  if (e.threshold && columnBits(row, (uint32_t)column) < e.threshold) return 0.f;
  return x * e.scale;
}

// finish is the epilogue of one element.
GK_DEVICE float finish(const Epilogue &e, float x, uint64_t row, int column) {
  if (e.bias) x += e.bias[column];
  if (e.activation == ReLU && x <= 0.f) x = 0.f;
  if (e.activation == ELU && x < 0.f) x = exponentialLess1(x);
  return dropped(e, x, row, column);
}

// finishBack is the gradient before the epilogue of one element, from that after it
// and from what was stored. kept is 1/scale. What was dropped is known from the key
// and not from a 0.
GK_DEVICE float finishBack(const Epilogue &e, float dy, float y, float kept, uint64_t row, int column) {
  float g = dropped(e, dy, row, column);
  float z = y * kept;
  if (e.activation == ReLU && z <= 0.f) return 0.f;
  if (e.activation == ELU && z < 0.f) return g * (z + 1.f);
  return g;
}

}  // namespace gk
