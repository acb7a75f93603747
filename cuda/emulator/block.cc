// The slow halves of the primitives, and how a launch ends badly.
#include "block.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "wrong.h"

namespace emulator {

Block *block;
Fiber *fiber;
std::string wrong;

std::map<std::string, Kernel> &kernels() {
  static std::map<std::string, Kernel> all;
  return all;
}

void wait() { leave(*fiber, false); }

void fail(const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  wrong = text;
  fiber->waits = Waits::ended;
  leave(*fiber, true);
  abort();  // nobody enters it again
}

void barrier(unsigned line) {
  Block &b = *block;
  if (b.alive < b.fibers.size())
    fail("a thread waits at the barrier of line %u after another has returned", line);
  if (b.arrived && b.barrier_line != line)
    fail("threads wait at the barriers of lines %u and %u at once", b.barrier_line, line);
  b.barrier_line = line;
  b.moved = true;
  if (++b.arrived == b.alive) {
    b.arrived = 0;
    b.barriers++;
    return;
  }
  fiber->waits = Waits::block;
  fiber->until = b.barriers + 1;
  wait();
}

unsigned char *meet(const char *operation, unsigned line, const void *mine, size_t bytes) {
  Meeting &w = block->warps[fiber->thread / 32];
  unsigned bit = 1u << fiber->thread % 32;
  if (w.ended) fail("%s in line %u: lanes %08x have returned", operation, line, w.ended);
  if (w.arrived && (w.line != line || strcmp(w.operation, operation) != 0))
    fail("%s in line %u meets %s in line %u: the warp has parted", operation, line, w.operation, w.line);
  w.operation = operation;
  w.line = line;
  w.arrived |= bit;
  unsigned char *given = w.given[w.count % 2][0];
  if (bytes) memcpy(given + fiber->thread % 32 * Meeting::room, mine, bytes);
  block->moved = true;
  if (w.arrived == w.lanes) {
    w.arrived = 0;
    w.count++;
    return given;
  }
  fiber->waits = Waits::warp;
  fiber->until = w.count + 1;
  wait();
  return given;
}

// Memory of the block begins as NaN, and anew in each block.
void *shared_memory(const void *site, size_t bytes) {
  auto [at, fresh] = block->shared.try_emplace(site);
  if (fresh) {
    at->second = {static_cast<char *>(aligned_alloc(16, (bytes + 15) / 16 * 16)), bytes};
    memset(at->second.at, 0xff, bytes);
    block->shared_bytes += bytes;
    if (block->shared_bytes > 48 << 10) fail("%zu bytes of shared memory: a block has 49152", block->shared_bytes);
  }
  return at->second.at;
}

void land(const Copy &c) {
  memcpy(c.to, c.from, (size_t)c.bytes);
  memset(static_cast<char *>(c.to) + c.bytes, 0, (size_t)(c.size - c.bytes));
}

}  // namespace emulator
