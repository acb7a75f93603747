//go:build cuda

#include "shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

// Containers often have the driver's library at the second place, where the
// dynamic linker does not look.
static const char *const usual[] = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"};

static const char *given = "";
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Written within once, only read after.
static void *library;
static enum hopmesh_cuda_state state = HOPMESH_CUDA_NO_LIBRARY;
static CUresult init_code = CUDA_ERROR_NO_DEVICE;
static char problem[512];

void hopmesh_cuda_use(const char *path) { given = path; }

static void *attempt(const char *path) {
    void *found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (found == NULL && problem[0] == 0) snprintf(problem, sizeof problem, "%s", dlerror());
    return found;
}

static void open_library(void) {
    if (given == NULL) return;
    if (given[0] != 0) {
        library = attempt(given);
    } else {
        for (size_t i = 0; i < sizeof usual / sizeof usual[0] && library == NULL; i++) library = attempt(usual[i]);
    }
    if (library == NULL) return;
    CUresult (*init)(unsigned int) = (CUresult(*)(unsigned int))dlsym(library, "cuInit");
    init_code = init == NULL ? CUDA_ERROR_NOT_FOUND : init(0);
    state = init_code == CUDA_SUCCESS ? HOPMESH_CUDA_READY : HOPMESH_CUDA_INIT_FAILED;
}

enum hopmesh_cuda_state hopmesh_cuda_open(void) {
    pthread_once(&once, open_library);
    return state;
}

const char *hopmesh_cuda_problem(void) { return problem; }

CUresult hopmesh_cuda_init_code(void) { return init_code; }

void *hopmesh_cuda_find(_Atomic(void *) *slot, const char *name, int early, CUresult *why) {
    *why = CUDA_ERROR_NO_DEVICE;
    switch (hopmesh_cuda_open()) {
    case HOPMESH_CUDA_NO_LIBRARY: return NULL;
    case HOPMESH_CUDA_INIT_FAILED:
        if (!early) return NULL;
    case HOPMESH_CUDA_READY: break;
    }
    void *found = dlsym(library, name);
    *why = CUDA_ERROR_NOT_FOUND;
    atomic_store_explicit(slot, found, memory_order_release);
    return found;
}

// Importing gorgonia.org/cu calls cuInit, and ends the program if that fails. So
// it does nothing and succeeds; the driver's own is called when it is opened.
CUresult cuInit(unsigned int flags) { return CUDA_SUCCESS; }

// Without a driver there are no devices, which is no failure.
CUresult cuDeviceGetCount(int *count) {
    static _Atomic(void *) slot;
    CUresult why = CUDA_SUCCESS;
    void *found = hopmesh_cuda_find(&slot, "cuDeviceGetCount", 0, &why);
    if (found != NULL) return ((CUresult(*)(int *))found)(count);
    *count = 0;
    return why == CUDA_ERROR_NO_DEVICE ? CUDA_SUCCESS : why;
}
