// memory.h: the device's memory, and the host's that the device knows. Device memory
// begins as NaN and lies between margins, so that who writes beside it is found.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <map>
#include <string>

namespace emulator {

class Memory {
 public:
  size_t total = size_t{8} << 30;

  bool parse(const char *mebibytes);  // of total; null: leaves it

  void *take(size_t bytes);    // null: there is not so much
  bool give(uintptr_t at);     // false: never taken
  void *pin(size_t bytes);
  bool unpin(void *at);
  // holds says whether bytes lie in memory that was taken; pinned in memory that was
  // pinned.
  bool holds(uintptr_t at, size_t bytes) const;
  bool pinned(const void *at, size_t bytes) const;
  size_t used() const { return used_; }
  // beside says where somebody wrote beside an allocation, "" if nowhere.
  std::string beside() const;
  void clear();

 private:
  std::map<uintptr_t, size_t> taken_, pinned_;
  size_t used_ = 0;
};

}  // namespace emulator
