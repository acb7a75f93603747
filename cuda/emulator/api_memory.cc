// Calls about memory. Copies that a driver does before it returns are done before
// this returns; those with pinned memory read and write it when their turn comes.
#include <string.h>

#include "api.h"

using namespace emulator;

API cuMemGetInfo_v2(size_t *left, size_t *total) {
  ENTER;
  *total = d.memory.total;
  *left = d.memory.total - d.memory.used();
  return CUDA_SUCCESS;
}

API cuMemAlloc_v2(CUdeviceptr *p, size_t bytes) {
  ENTER;
  if (unsafe(d)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  void *at = d.memory.take(bytes);
  if (!at) return CUDA_ERROR_OUT_OF_MEMORY;
  *p = reinterpret_cast<CUdeviceptr>(at);
  return CUDA_SUCCESS;
}

API cuMemFree_v2(CUdeviceptr p) {
  ENTER;
  if (unsafe(d)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  d.queues.finish_all();
  if (d.broken) return d.broken;
  return d.memory.give(p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuMemHostAlloc(void **p, size_t bytes, unsigned) {
  ENTER;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  *p = d.memory.pin(bytes);
  return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API cuMemFreeHost(void *p) {
  ENTER;
  d.queues.finish_all();
  return d.memory.unpin(p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

namespace {

// now does something in place of the default stream.
CUresult now(Device &d, const std::function<void()> &work) {
  if (unsafe(d)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  d.queues.finish_blocking();
  if (!d.broken) work();
  return d.broken;
}

}  // namespace

API cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n) {
  ENTER;
  if (!d.memory.holds(to, n)) return CUDA_ERROR_INVALID_VALUE;
  return now(d, [=] { memcpy(reinterpret_cast<void *>(to), from, n); });
}

API cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n) {
  ENTER;
  if (!d.memory.holds(from, n)) return CUDA_ERROR_INVALID_VALUE;
  return now(d, [=] { memcpy(to, reinterpret_cast<void *>(from), n); });
}

API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n) {
  ENTER;
  if (!d.memory.holds(from, n) || !d.memory.holds(to, n)) return CUDA_ERROR_INVALID_VALUE;
  return now(d, [=] { memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), n); });
}

// From memory that is not pinned a driver takes a copy first.
API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s) {
  ENTER;
  if (!d.memory.holds(to, n)) return CUDA_ERROR_INVALID_VALUE;
  void *at = reinterpret_cast<void *>(to);
  if (d.memory.pinned(from, n)) return put(d, s, [=] { memcpy(at, from, n); });
  if (unsafe(d)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  auto *bytes = static_cast<const char *>(from);
  return put(d, s, [at, copy = std::vector<char>(bytes, bytes + n)] { memcpy(at, copy.data(), copy.size()); });
}

// Into memory that is not pinned a driver waits.
API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s) {
  ENTER;
  if (!d.memory.holds(from, n)) return CUDA_ERROR_INVALID_VALUE;
  void *at = reinterpret_cast<void *>(from);
  bool pinned = d.memory.pinned(to, n);
  if (!pinned && unsafe(d)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  CUresult code = put(d, s, [=] { memcpy(to, at, n); });
  if (code || pinned) return code;
  d.queues.finish(stream(d, s));
  return d.broken;
}

API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
  ENTER;
  if (!d.memory.holds(from, n) || !d.memory.holds(to, n)) return CUDA_ERROR_INVALID_VALUE;
  return put(d, s, [=] { memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), n); });
}

API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream s) {
  ENTER;
  if (!d.memory.holds(to, n)) return CUDA_ERROR_INVALID_VALUE;
  return put(d, s, [=] { memset(reinterpret_cast<void *>(to), value, n); });
}

API cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream s) {
  ENTER;
  if (n > SIZE_MAX / 4 || !d.memory.holds(to, 4 * n) || to % 4) return CUDA_ERROR_INVALID_VALUE;
  return put(d, s, [=] {
    for (size_t i = 0; i < n; i++) reinterpret_cast<unsigned *>(to)[i] = value;
  });
}
