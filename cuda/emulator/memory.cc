#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <iterator>

namespace emulator {

namespace {
constexpr size_t margin = 256;
constexpr unsigned char poison = 0xff;  // of what is handed out
// Margins are floats that arithmetic changes though it leaves them NaN.
constexpr uint32_t guard = 0xffa5a5a5u;

size_t whole(size_t bytes) { return (bytes + margin - 1) / margin * margin; }

bool within(const std::map<uintptr_t, size_t> &all, uintptr_t at, size_t bytes) {
  auto next = all.upper_bound(at);
  if (next == all.begin()) return false;
  auto [from, size] = *std::prev(next);
  return at - from <= size && bytes <= size - (at - from);
}

unsigned char guarding(uintptr_t at) { return (unsigned char)(guard >> at % 4 * 8); }

void protect(uintptr_t from, uintptr_t to) {
  for (; from < to; from++) *reinterpret_cast<unsigned char *>(from) = guarding(from);
}

bool untouched(uintptr_t from, uintptr_t to) {
  for (; from < to; from++)
    if (*reinterpret_cast<const unsigned char *>(from) != guarding(from)) return false;
  return true;
}
}  // namespace

bool Memory::parse(const char *mebibytes) {
  if (mebibytes) total = strtoull(mebibytes, nullptr, 10) << 20;
  return total > 0;
}

void *Memory::take(size_t bytes) {
  if (bytes > total - used_) return nullptr;
  auto *p = static_cast<char *>(aligned_alloc(margin, whole(bytes) + 2 * margin));
  if (!p) return nullptr;
  auto at = reinterpret_cast<uintptr_t>(p + margin);
  protect(at - margin, at);
  memset(p + margin, poison, bytes);
  protect(at + bytes, at + whole(bytes) + margin);
  taken_[at] = bytes;
  used_ += bytes;
  return p + margin;
}

bool Memory::give(uintptr_t at) {
  auto found = taken_.find(at);
  if (found == taken_.end()) return false;
  used_ -= found->second;
  free(reinterpret_cast<char *>(at) - margin);
  taken_.erase(found);
  return true;
}

void *Memory::pin(size_t bytes) {
  void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (p) pinned_[reinterpret_cast<uintptr_t>(p)] = bytes;
  return p;
}

bool Memory::unpin(void *at) {
  if (!pinned_.erase(reinterpret_cast<uintptr_t>(at))) return false;
  free(at);
  return true;
}

bool Memory::holds(uintptr_t at, size_t bytes) const { return within(taken_, at, bytes); }

bool Memory::pinned(const void *at, size_t bytes) const { return within(pinned_, reinterpret_cast<uintptr_t>(at), bytes); }

std::string Memory::beside() const {
  for (auto [at, bytes] : taken_) {
    const char *side = !untouched(at - margin, at) ? "before" : !untouched(at + bytes, at + whole(bytes) + margin) ? "behind" : nullptr;
    if (!side) continue;
    char text[128];
    snprintf(text, sizeof text, "something was written %s an allocation of %zu bytes", side, bytes);
    return text;
  }
  return "";
}

void Memory::clear() {
  while (!taken_.empty()) give(taken_.begin()->first);
}

}  // namespace emulator
