#include "module.h"

#include <stdio.h>

#include "block.h"

namespace emulator {

std::string Module::parse(const std::string &text) {
  if (text.find(".version") == std::string::npos || text.find(".target sm_") == std::string::npos) return "this is no PTX";
  const std::string entry = ".entry ";
  for (size_t at = 0; (at = text.find(entry, at)) != std::string::npos;) {
    at += entry.size();
    size_t open = text.find('(', at), close = text.find(')', at);
    if (open == std::string::npos || close == std::string::npos || close < open) return "an entry without parameters";
    auto &sizes = entries[text.substr(at, open - at)];
    for (size_t p = open; (p = text.find(".param .", p)) < close; p++) {
      char kind;
      int bits;
      if (sscanf(text.c_str() + p, ".param .%c%d", &kind, &bits) != 2) return "a parameter of no plain type";
      sizes.push_back(bits / 8);
    }
    at = close;
  }
  return entries.empty() ? "no kernels" : "";
}

std::string Module::differs(const std::string &name) const {
  auto list = [](const std::vector<int> &sizes) {
    std::string s;
    for (int n : sizes) s += " " + std::to_string(n);
    return s;
  };
  auto host = kernels().find(name);
  if (host == kernels().end()) return "kernel " + name + " is not compiled for the host";
  const auto &sizes = entries.at(name);
  if (sizes == host->second.sizes) return "";
  return "kernel " + name + " has parameters of" + list(sizes) + " bytes in PTX and of" + list(host->second.sizes) + " on the host: make ptx";
}

}  // namespace emulator
