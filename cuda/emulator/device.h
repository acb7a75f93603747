// device.h: the one device, behind one lock.
#pragma once
#include <cuda.h>

#include <memory>
#include <mutex>
#include <thread>

#include "launch.h"
#include "memory.h"
#include "module.h"
#include "queue.h"

namespace emulator {

// A Fault is what goes wrong on request: "NAME:N:CODE" has the Nth call of that name, or
// the Nth run of the kernel, end so. After 2, which is out of memory, all goes on; else
// the device is lost.
struct Fault {
  std::string name;
  int left = 0, code = 0;

  bool parse(const char *text);  // null: nothing does
  CUresult meet(const std::string &now, CUresult &broken);
};

struct Device {
  std::mutex lock;
  Memory memory;
  Queues queues;
  Schedule schedule;
  Fault fault;
  CUresult broken = CUDA_SUCCESS;  // what a kernel did wrong; every call says so
  Stream *standard = nullptr;      // the default stream
  int retained = 0;                // references to the context
  std::vector<std::unique_ptr<Graph>> graphs;
  std::thread::id capturing;       // who captures, if captures_open
  int captures_open = 0;

  Device();
};

Device &device();

// run runs a kernel now; what goes wrong breaks the device.
void run(Device &d, const Kernel &k, Dim grid, Dim size, const std::vector<uint64_t> &arguments);

}  // namespace emulator
