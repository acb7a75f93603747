// How calls of the driver reach its library: opened by name at the first call that
// needs it, so that one program runs with it and without.
#pragma once

#include <cuda.h>
#include <stdatomic.h>

// Nothing of this is visible to other libraries: they find the real driver.
#pragma GCC visibility push(hidden)

// How opening the library ended.
enum hopmesh_cuda_state { HOPMESH_CUDA_READY, HOPMESH_CUDA_NO_LIBRARY, HOPMESH_CUDA_INIT_FAILED };

// hopmesh_cuda_use says where the library is, before the first call: "" is the
// usual places, and NULL that there is none.
void hopmesh_cuda_use(const char *path);

// hopmesh_cuda_open opens the library if nobody has yet.
enum hopmesh_cuda_state hopmesh_cuda_open(void);

// What the dynamic linker said first, and what the driver's own cuInit returned;
// after hopmesh_cuda_open.
const char *hopmesh_cuda_problem(void);
CUresult hopmesh_cuda_init_code(void);

// hopmesh_cuda_name is NVIDIA's name of a code, or NULL.
const char *hopmesh_cuda_name(int code);

// hopmesh_cuda_find is the library's function of this name, kept in slot; or NULL
// and why not. What is early needs no device.
void *hopmesh_cuda_find(_Atomic(void *) *slot, const char *name, int early, CUresult *why);

#define HOPMESH_FORWARD_AS(symbol, parameters, arguments, early)                                  \
    CUresult symbol parameters {                                                                  \
        static _Atomic(void *) slot;                                                              \
        CUresult why = CUDA_SUCCESS;                                                              \
        void *found = atomic_load_explicit(&slot, memory_order_acquire);                          \
        if (found == NULL) found = hopmesh_cuda_find(&slot, #symbol, early, &why);                \
        if (found == NULL) return why;                                                            \
        return ((CUresult(*) parameters)found)arguments;                                          \
    }
#define HOPMESH_FORWARD(symbol, parameters, arguments) HOPMESH_FORWARD_AS(symbol, parameters, arguments, 0)
#define HOPMESH_FORWARD_EARLY(symbol, parameters, arguments) HOPMESH_FORWARD_AS(symbol, parameters, arguments, 1)

#pragma GCC visibility pop
