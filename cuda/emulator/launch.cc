#include "launch.h"

#include <algorithm>
#include <random>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "fiber.h"
#include "wrong.h"

namespace emulator {

namespace {

const Kernel *kernel;  // that runs
void **arguments;

// body is a fiber's life.
void body() {
  begun();
  kernel->call(arguments);
  Block &b = *block;
  Meeting &w = b.warps[fiber->thread / 32];
  if (b.arrived) fail("a thread returned while others wait at the barrier of line %u", b.barrier_line);
  if (w.arrived) fail("a lane returned while its warp waits for it in %s in line %u", w.operation, w.line);
  bool copies = !fiber->open.empty();
  for (const auto &group : fiber->groups) copies |= !group.empty();
  if (copies) fail("a thread returned before its copies into shared memory had landed");
  b.moved = true;
  b.alive--;
  w.ended |= 1u << fiber->thread % 32;
  fiber->waits = Waits::ended;
  leave(*fiber, true);
  abort();
}

// may says whether a fiber can go on.
bool may(const Fiber &f) {
  switch (f.waits) {
    case Waits::nothing: return true;
    case Waits::warp: return block->warps[f.thread / 32].count >= f.until;
    case Waits::block: return block->barriers >= f.until;
    case Waits::ended: return false;
  }
  return false;
}

// step lets a fiber run on if it can. False: the launch has failed.
bool step(Fiber &f) {
  if (!may(f)) return true;
  f.waits = Waits::nothing;
  fiber = &f;
  enter(f);
  return wrong.empty();
}

// turns runs all fibers of the block once, in the schedule's order.
bool turns(const Schedule &s, std::vector<unsigned> &order, std::mt19937_64 &random) {
  Block &b = *block;
  if (s.order == Schedule::greedy || s.order == Schedule::greedy_reverse) {
    size_t warps = b.warps.size();
    for (size_t i = 0; i < warps; i++) {
      size_t w = s.order == Schedule::greedy ? i : warps - 1 - i;
      do {
        b.moved = false;
        for (size_t t = w * 32; t < w * 32 + 32; t++)
          if (!step(b.fibers[t])) return false;
      } while (b.moved);
    }
    return true;
  }
  if (s.order == Schedule::random) std::shuffle(order.begin(), order.end(), random);
  for (unsigned t : order)
    if (!step(b.fibers[t])) return false;
  return true;
}

// able says whether any fiber can go on.
bool able() { return std::any_of(block->fibers.begin(), block->fibers.end(), may); }

std::string where() {
  std::string s = " [block " + std::to_string(block->index.x) + "," + std::to_string(block->index.y) + "," + std::to_string(block->index.z);
  if (fiber) s += " thread " + std::to_string(fiber->thread);
  return s + "]";
}

void release(Block &b) {
  for (auto &[site, s] : b.shared) free(s.at);
  b.shared.clear();
  b.shared_bytes = 0;
}

// run runs one block.
void run(Block &b, Dim index, const Schedule &s, Stacks &stacks, std::mt19937_64 &random) {
  unsigned n = b.size.x;
  b.index = index;
  b.alive = n;
  b.arrived = 0;
  b.barriers = 0;
  for (auto &w : b.warps) {
    w.arrived = w.ended = 0;
    w.count = 0;
    w.lanes = 0xffffffffu;
  }
  std::vector<unsigned> order(n);
  for (unsigned i = 0; i < n; i++) {
    Fiber &f = b.fibers[i];
    f.thread = order[i] = i;
    f.waits = Waits::nothing;
    f.groups.clear();
    f.open.clear();
    f.stack = stacks.get(i);
    prepare(f, body);
  }
  if (s.order == Schedule::reverse) std::reverse(order.begin(), order.end());
  while (b.alive) {
    if (!turns(s, order, random)) break;
    if (b.alive && !able()) {
      fiber = nullptr;
      wrong = "threads wait for each other for ever";
      break;
    }
  }
  if (!wrong.empty()) wrong = std::string(kernel->name) + ": " + wrong + where();
  release(b);
}

}  // namespace

bool parse(const char *order, const char *copies, Schedule &s) {
  s = {};
  std::string o = order ? order : "fwd", c = copies ? copies : "late";
  if (o == "fwd") s.order = Schedule::forward;
  else if (o == "rev") s.order = Schedule::reverse;
  else if (o == "greedy") s.order = Schedule::greedy;
  else if (o == "greedyrev") s.order = Schedule::greedy_reverse;
  else if (o.starts_with("rand:")) s.order = Schedule::random, s.seed = strtoull(o.c_str() + 5, nullptr, 10);
  else return false;
  s.eager_copies = c == "eager";
  return c == "eager" || c == "late";
}

std::string launch(const Kernel &k, Dim grid, Dim size, void **parameters, const Schedule &s) {
  std::string name = k.name;
  if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) return name + ": no such grid";
  if (size.y != 1 || size.z != 1 || size.x % 32 || !size.x) return name + ": a block is whole warps in x";
  if (size.x > k.threads) return name + ": a block of " + std::to_string(size.x) + " threads: it is bounded by " + std::to_string(k.threads);
  static Stacks stacks;
  std::mt19937_64 random(s.seed);
  Block b;
  b.grid = grid;
  b.size = size;
  b.eager_copies = s.eager_copies;
  b.fibers.resize(size.x);
  b.warps.resize(size.x / 32);
  block = &b;
  kernel = &k;
  arguments = parameters;
  wrong.clear();

  uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
  std::vector<uint64_t> order;
  if (s.order == Schedule::random) {
    order.resize(blocks);
    for (uint64_t i = 0; i < blocks; i++) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
  }
  Addresses guarded;
  bool backwards = s.order == Schedule::reverse || s.order == Schedule::greedy_reverse;
  for (uint64_t i = 0; i < blocks && wrong.empty(); i++) {
    uint64_t at = !order.empty() ? order[i] : backwards ? blocks - 1 - i : i;
    run(b, {(unsigned)(at % grid.x), (unsigned)(at / grid.x % grid.y), (unsigned)(at / grid.x / grid.y)}, s, stacks, random);
  }
  block = nullptr;
  fiber = nullptr;
  return wrong;
}

}  // namespace emulator
