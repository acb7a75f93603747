// Calls about the device, contexts, modules and launches.
#include <stdio.h>
#include <string.h>

#include "api.h"

using namespace emulator;

API cuInit(unsigned) { return CUDA_SUCCESS; }

API cuDriverGetVersion(int *version) {
  *version = 12040;
  return CUDA_SUCCESS;
}

API cuGetErrorString(CUresult code, const char **text) {
  *text = code == CUDA_SUCCESS ? "no error" : code == CUDA_ERROR_LAUNCH_FAILED ? "a kernel failed in the emulator, which said why on stderr" : "an error of the emulator";
  return CUDA_SUCCESS;
}

API cuDeviceGetCount(int *n) {
  *n = 1;
  return CUDA_SUCCESS;
}

API cuDeviceGet(CUdevice *dev, int ordinal) {
  *dev = 0;
  return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

API cuDeviceGetName(char *name, int room, CUdevice) {
  snprintf(name, (size_t)room, "emulated GPU");
  return CUDA_SUCCESS;
}

API cuDeviceTotalMem_v2(size_t *bytes, CUdevice) {
  *bytes = device().memory.total;
  return CUDA_SUCCESS;
}

// An attribute that nobody asked for yet is an error, and not 0.
API cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice) {
  switch ((int)which) {
    case 1: *value = 1024; break;           // threads of a block
    case 2: *value = 1024; break;           // and of it along x, y, z
    case 3: *value = 1024; break;
    case 4: *value = 64; break;
    case 5: *value = 0x7fffffff; break;     // blocks along x, y, z
    case 6: *value = 65535; break;
    case 7: *value = 65535; break;
    case 8: *value = 48 << 10; break;       // shared memory of a block
    case 10: *value = 32; break;            // threads of a warp
    case 13: *value = 1000000; break;       // clock, in kHz
    case 16: *value = 8; break;             // multiprocessors
    case 31: *value = 1; break;             // kernels at once
    case 38: *value = 4 << 20; break;       // second-level cache
    case 39: *value = 2048; break;          // threads of a multiprocessor
    case 41: *value = 1; break;             // one address space
    case 75: *value = 8; break;             // compute capability
    case 76: *value = 0; break;
    case 97: *value = 48 << 10; break;      // shared memory that a block may ask for
    default:
      fprintf(stderr, "emulator: attribute %d is not known\n", (int)which);
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice) {
  ENTER;
  d.retained++;
  *c = reinterpret_cast<CUcontext>(&d);
  return CUDA_SUCCESS;
}

// The last reference takes what the context holds with it.
API cuDevicePrimaryCtxRelease_v2(CUdevice) {
  Device &d = device();
  std::lock_guard<std::mutex> held(d.lock);
  if (!d.retained) return CUDA_ERROR_INVALID_CONTEXT;
  if (--d.retained) return CUDA_SUCCESS;
  d.queues.finish_all();
  d.memory.clear();
  return CUDA_SUCCESS;
}

// Who holds a reference holds it after this, too.
API cuDevicePrimaryCtxReset_v2(CUdevice) {
  Device &d = device();
  std::lock_guard<std::mutex> held(d.lock);
  d.queues.finish_all();
  d.memory.clear();
  d.broken = CUDA_SUCCESS;
  return CUDA_SUCCESS;
}

API cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }

API cuCtxSynchronize(void) {
  ENTER;
  if (unsafe(d)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  d.queues.finish_all();
  return d.broken;
}

API cuModuleLoadData(CUmodule *m, const void *image) {
  ENTER;
  auto loaded = std::make_unique<Module>();
  std::string wrong = loaded->parse(static_cast<const char *>(image));
  for (auto &[name, sizes] : loaded->entries)
    if (wrong.empty() && kernels().contains(name)) wrong = loaded->differs(name);
  if (!wrong.empty()) {
    fprintf(stderr, "emulator: %s\n", wrong.c_str());
    return CUDA_ERROR_INVALID_PTX;
  }
  if (!(loaded->at = d.memory.take(Module::bytes))) return CUDA_ERROR_OUT_OF_MEMORY;
  *m = reinterpret_cast<CUmodule>(loaded.release());
  return CUDA_SUCCESS;
}

API cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned, CUjit_option *, void **) { return cuModuleLoadData(m, image); }

API cuModuleUnload(CUmodule m) {
  ENTER;
  std::unique_ptr<Module> loaded(reinterpret_cast<Module *>(m));
  d.memory.give(reinterpret_cast<uintptr_t>(loaded->at));  // in vain after a reset
  return CUDA_SUCCESS;
}

API cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
  ENTER;
  auto *module = reinterpret_cast<Module *>(m);
  if (!module->entries.contains(name)) return CUDA_ERROR_NOT_FOUND;
  std::string wrong = module->differs(name);
  if (!wrong.empty()) {
    fprintf(stderr, "emulator: %s\n", wrong.c_str());
    return CUDA_ERROR_NOT_FOUND;
  }
  *f = reinterpret_cast<CUfunction>(&kernels().at(name));
  return CUDA_SUCCESS;
}

API cuFuncSetAttribute(CUfunction, CUfunction_attribute, int value) { return value <= 48 << 10 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

API cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction f) {
  *value = (int)which == 0 ? (int)reinterpret_cast<Kernel *>(f)->threads : 0;  // threads of a block
  return CUDA_SUCCESS;
}

// Arguments are copied now, as a driver does. No kernel of ours has dynamic shared
// memory.
CUresult emulator::launching(Device &d, const CUDA_KERNEL_NODE_PARAMS &p, std::function<void()> &work) {
  auto *k = reinterpret_cast<const Kernel *>(p.func);
  if (!k) return CUDA_ERROR_INVALID_HANDLE;
  unsigned gx = p.gridDimX, gy = p.gridDimY, gz = p.gridDimZ, bx = p.blockDimX, by = p.blockDimY, bz = p.blockDimZ;
  if (p.extra || p.sharedMemBytes || !gx || !gy || !gz || gx > 0x7fffffffu || gy > 65535 || gz > 65535 || by != 1 || bz != 1 || !bx || bx % 32 || bx > k->threads) {
    fprintf(stderr, "emulator: %s: a grid of %u,%u,%u blocks of %u,%u,%u threads and %u bytes\n", k->name, gx, gy, gz, bx, by, bz, p.sharedMemBytes);
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<uint64_t> arguments(k->sizes.size());
  for (size_t i = 0; i < arguments.size(); i++) memcpy(&arguments[i], p.kernelParams[i], (size_t)k->sizes[i]);
  work = [&d, k, gx, gy, gz, bx, arguments] { run(d, *k, {gx, gy, gz}, {bx, 1, 1}, arguments); };
  return CUDA_SUCCESS;
}

API cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned dynamic, CUstream s,
                   void **parameters, void **extra) {
  ENTER;
  std::function<void()> work;
  CUresult code = launching(d, {f, gx, gy, gz, bx, by, bz, dynamic, parameters, extra, nullptr, nullptr}, work);
  return code ? code : put(d, s, std::move(work));
}
