// api.h: how the calls of the driver are written down: api_*.cc.
#pragma once
#include "device.h"

// API begins a function that a program finds by name. ENTER holds the lock and answers
// what broke the device, if anything did, or what the call was told to.
#define API extern "C" __attribute__((visibility("default"))) CUresult
#define ENTER                                       \
  emulator::Device &d = emulator::device();         \
  std::lock_guard<std::mutex> held(d.lock);         \
  if (d.broken) return d.broken;                    \
  if (CUresult code = d.fault.meet(__func__, d.broken)) return code

namespace emulator {

// stream is the stream of a handle, or null: there is no such.
inline Stream *stream(Device &d, CUstream s) {
  if (!s) return d.standard;
  auto *p = reinterpret_cast<Stream *>(s);
  return d.queues.known(p) ? p : nullptr;
}

// unsafe says whether a call may not be made while this thread captures.
inline bool unsafe(const Device &d) { return d.captures_open && d.capturing == std::this_thread::get_id(); }

// put queues work, or writes it into what the stream captures. The default stream
// waits for those that mind it.
CUresult put(Device &d, CUstream s, std::function<void()> work);

// launching makes work of a launch.
CUresult launching(Device &d, const CUDA_KERNEL_NODE_PARAMS &p, std::function<void()> &work);

}  // namespace emulator
