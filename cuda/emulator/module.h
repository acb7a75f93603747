// module.h: the PTX that is loaded, as far as the emulator reads it. What runs are the
// kernels compiled for the host; the text is what ships, so both must have the same
// parameters.
#pragma once
#include <stddef.h>

#include <map>
#include <string>
#include <vector>

namespace emulator {

struct Module {
  static constexpr size_t bytes = size_t{64} << 10;  // of the device's memory, as code takes some
  void *at = nullptr;
  std::map<std::string, std::vector<int>> entries;  // name, sizes of parameters

  // parse returns "" or what is wrong with the text.
  std::string parse(const std::string &text);
  // differs says how a kernel's parameters differ from the host's, "" if they do not.
  std::string differs(const std::string &name) const;
};

}  // namespace emulator
