#include "device.h"

#include <stdio.h>
#include <stdlib.h>

namespace emulator {

Device &device() {
  static Device d;
  return d;
}

// What the environment says wrong ends the program: a test must not run on another
// schedule than it believes.
Device::Device() {
  if (!parse(getenv("HOPMESH_EMU_SCHED"), getenv("HOPMESH_EMU_COPY"), schedule) || !queues.policy.parse(getenv("HOPMESH_EMU_QUEUE"))) {
    fprintf(stderr,
            "emulator: HOPMESH_EMU_SCHED is fwd, rev, greedy, greedyrev or rand:N, HOPMESH_EMU_COPY late or eager, "
            "HOPMESH_EMU_QUEUE late, eager or rand:N\n");
    exit(2);
  }
  standard = queues.open(true);
}

void run(Device &d, const Kernel &k, Dim grid, Dim size, const std::vector<uint64_t> &arguments) {
  if (d.broken) return;
  std::vector<uint64_t> values = arguments;
  std::vector<void *> parameters;
  for (auto &v : values) parameters.push_back(&v);
  std::string wrong = launch(k, grid, size, parameters.data(), d.schedule);
  if (wrong.empty()) {
    wrong = d.memory.beside();
    if (!wrong.empty()) wrong = std::string(k.name) + ": " + wrong;
  }
  if (wrong.empty()) return;
  fprintf(stderr, "emulator: %s\n", wrong.c_str());
  d.broken = CUDA_ERROR_LAUNCH_FAILED;
}

}  // namespace emulator
