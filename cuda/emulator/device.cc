#include "device.h"

#include <stdio.h>
#include <stdlib.h>

namespace emulator {

Device &device() {
  static Device d;
  return d;
}

bool Fault::parse(const char *text) {
  if (!text) return true;
  char called[64];
  if (sscanf(text, "%63[a-z0-9A-Z_]:%d:%d", called, &left, &code) != 3 || left < 1 || code < 1) return false;
  name = called;
  return true;
}

CUresult Fault::meet(const std::string &now, CUresult &broken) {
  if (now != name || --left != 0) return CUDA_SUCCESS;
  if (code != CUDA_ERROR_OUT_OF_MEMORY) broken = (CUresult)code;
  return (CUresult)code;
}

// What the environment says wrong ends the program: a test must not run on another
// schedule than it believes.
Device::Device() {
  if (!parse(getenv("HOPMESH_EMU_SCHED"), getenv("HOPMESH_EMU_COPY"), schedule) || !queues.policy.parse(getenv("HOPMESH_EMU_QUEUE")) ||
      !fault.parse(getenv("HOPMESH_EMU_FAULT")) || !memory.parse(getenv("HOPMESH_EMU_MEMORY"))) {
    fprintf(stderr,
            "emulator: HOPMESH_EMU_SCHED is fwd, rev, greedy, greedyrev or rand:N, HOPMESH_EMU_COPY late or eager, "
            "HOPMESH_EMU_QUEUE late, eager or rand:N, HOPMESH_EMU_FAULT a call or kernel, which time and a code, as adam:3:719, "
            "HOPMESH_EMU_MEMORY a number of MiB\n");
    exit(2);
  }
  standard = queues.open(true);
}

void run(Device &d, const Kernel &k, Dim grid, Dim size, const std::vector<uint64_t> &arguments) {
  if (d.broken || d.fault.meet(k.name, d.broken)) return;
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
