// A driver for tests: it answers few calls, one stream is as another, and its
// kernels are two functions of C. FAKE_INIT is what cuInit returns, FAKE_VERSION
// the version and FAKE_DEVICES the number of devices. It has no cuMemcpyDtoDAsync.
#include <cuda.h>
#include <stdio.h>
#include <string.h>

static int number(const char *name, int otherwise) {
    const char *v = getenv(name);
    return v == NULL ? otherwise : atoi(v);
}

static int initialised, retained;
static int here; // what the context points at
static _Thread_local CUcontext current;
static CUresult fault; // sticks until the context is reset
static size_t taken;

#define MUST(c) if (!(c)) return CUDA_ERROR_INVALID_VALUE
// What any call with a context begins with.
#define WORKS                                             \
    if (current == NULL) return CUDA_ERROR_INVALID_CONTEXT; \
    if (fault != CUDA_SUCCESS) return fault

CUresult cuInit(unsigned int flags) {
    initialised = 1;
    return number("FAKE_INIT", CUDA_SUCCESS);
}
CUresult cuDriverGetVersion(int *v) { *v = number("FAKE_VERSION", 12040); return CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult code, const char **words) {
    *words = "words of the driver";
    return code == 12345 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult code, const char **name) {
    *name = code == 721 ? "A_NEWER_NAME" : NULL;
    return *name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *n) {
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    *n = number("FAKE_DEVICES", 2);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *d, int ordinal) {
    if (ordinal < 0 || ordinal >= number("FAKE_DEVICES", 2)) return CUDA_ERROR_INVALID_DEVICE;
    *d = ordinal;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *to, int n, CUdevice d) { snprintf(to, n, "Fake %d", d); return CUDA_SUCCESS; }
CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) { *n = (size_t)(d + 1) << 30; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
    switch (a) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *v = number("FAKE_MAJOR", 9); break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *v = d; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = 132; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *v = 232448; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
    if (fault != CUDA_SUCCESS) return fault;
    retained++;
    *c = (CUcontext)&here;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
    MUST(retained-- > 0);
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice d) {
    fault = CUDA_SUCCESS;
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext c) { current = c; return CUDA_SUCCESS; }
CUresult cuCtxSynchronize(void) { WORKS; return CUDA_SUCCESS; }

CUresult cuMemGetInfo_v2(size_t *left, size_t *all) { WORKS; *all = 1 << 30; *left = *all - taken; return CUDA_SUCCESS; }
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
    WORKS;
    if (n > 1 << 30) return CUDA_ERROR_OUT_OF_MEMORY;
    size_t *block = malloc(n + 256);
    *block = n;
    taken += n;
    memset(block + 32, 0xff, n);
    *p = (CUdeviceptr)(block + 32);
    return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr p) {
    WORKS;
    size_t *block = (size_t *)p - 32;
    taken -= *block;
    free(block);
    return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void **p, size_t n, unsigned int flags) {
    WORKS;
    MUST(flags == CU_MEMHOSTALLOC_PORTABLE);
    *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096);
    return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void *p) { WORKS; free(p); return CUDA_SUCCESS; }
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n) { WORKS; memcpy((void *)to, from, n); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n) { WORKS; memcpy(to, (void *)from, n); return CUDA_SUCCESS; }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s) { return cuMemcpyHtoD_v2(to, from, n); }
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s) { return cuMemcpyDtoH_v2(to, from, n); }
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s) { WORKS; memset((void *)to, v, n); return CUDA_SUCCESS; }
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int v, size_t n, CUstream s) {
    WORKS;
    for (size_t i = 0; i < n; i++) ((unsigned int *)to)[i] = v;
    return CUDA_SUCCESS;
}

struct CUstream_opaque { struct CUgraph_opaque *capturing; };
struct CUevent_opaque { int timed, recorded; };
CUresult cuStreamCreate(CUstream *s, unsigned int flags) {
    WORKS;
    MUST(flags == CU_STREAM_NON_BLOCKING);
    *s = calloc(1, sizeof **s);
    return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream s) { free(s); return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream s) { WORKS; return CUDA_SUCCESS; }
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned int flags) { WORKS; MUST(flags == 0 && e->recorded); return CUDA_SUCCESS; }
CUresult cuEventCreate(CUevent *e, unsigned int flags) {
    WORKS;
    *e = calloc(1, sizeof **e);
    (*e)->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent e) { free(e); return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent e, CUstream s) { WORKS; e->recorded = 1; return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent e) { WORKS; return CUDA_SUCCESS; }
CUresult cuEventQuery(CUevent e) { WORKS; return e->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
    WORKS;
    if (!from->timed || !to->timed) return CUDA_ERROR_INVALID_HANDLE;
    *ms = 1.5f;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *m, const void *image) {
    WORKS;
    if (strstr(image, ".target") == NULL) return CUDA_ERROR_INVALID_PTX;
    *m = (CUmodule)&here;
    return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule m) { WORKS; return CUDA_SUCCESS; }
static struct CUfunction_opaque { const char *name; int shared; } functions[] = {{"add"}, {"fault"}};
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
    WORKS;
    for (int i = 0; i < 2; i++) {
        if (strcmp(functions[i].name, name) == 0) { *f = &functions[i]; return CUDA_SUCCESS; }
    }
    return CUDA_ERROR_NOT_FOUND;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
    WORKS;
    MUST(a == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && v <= 232448);
    f->shared = v;
    return CUDA_SUCCESS;
}

// A launch of add: p[i] += x for n numbers, once a thread of the grid.
struct launch { float *p; int n, times; float x; };
static void run(struct launch l) {
    for (int k = 0; k < l.times; k++) for (int i = 0; i < l.n; i++) l.p[i] += l.x;
}
struct CUgraph_opaque { int n; struct launch list[8]; };
CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
                        unsigned int bz, unsigned int shared, CUstream s, void **arguments, void **extra) {
    WORKS;
    MUST(gx && gy && gz && bx && by && bz && extra == NULL && (int)shared <= (f->shared > 49152 ? f->shared : 49152));
    if (strcmp(f->name, "fault") == 0) { fault = CUDA_ERROR_ILLEGAL_ADDRESS; return CUDA_SUCCESS; }
    struct launch l = {*(float **)arguments[0], *(int *)arguments[1], gx * gy * gz * bx * by * bz, *(float *)arguments[2]};
    if (s != NULL && s->capturing != NULL) s->capturing->list[s->capturing->n++] = l;
    else run(l);
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
    WORKS;
    MUST(mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    s->capturing = calloc(1, sizeof *s->capturing);
    return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream s, CUgraph *g) { WORKS; *g = s->capturing; s->capturing = NULL; return CUDA_SUCCESS; }
CUresult cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph g, unsigned long long flags) {
    WORKS;
    CUgraph copy = malloc(sizeof *copy);
    *copy = *g;
    *e = (CUgraphExec)copy;
    return CUDA_SUCCESS;
}
CUresult cuGraphCreate(CUgraph *g, unsigned int flags) {
    WORKS;
    MUST(flags == 0);
    *g = calloc(1, sizeof **g);
    return CUDA_SUCCESS;
}
// A node is the place of a launch, from 1 on.
static CUresult node(CUgraph g, size_t at, const CUDA_KERNEL_NODE_PARAMS *p) {
    MUST(strcmp(p->func->name, "add") == 0 && at < 8);
    struct launch l = {*(float **)p->kernelParams[0], *(int *)p->kernelParams[1], p->gridDimX * p->gridDimY * p->gridDimZ * p->blockDimX,
                       *(float *)p->kernelParams[2]};
    g->list[at] = l;
    return CUDA_SUCCESS;
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode *to, CUgraph g, const CUgraphNode *after, size_t n, const CUDA_KERNEL_NODE_PARAMS *p) {
    WORKS;
    MUST(n == (g->n > 0) && (n == 0 || (size_t)after[0] == (size_t)g->n));
    *to = (CUgraphNode)(size_t)(g->n + 1);
    return node(g, g->n++, p);
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec e, CUgraphNode at, const CUDA_KERNEL_NODE_PARAMS *p) {
    WORKS;
    return node((CUgraph)e, (size_t)at - 1, p);
}
CUresult cuGraphDestroy(CUgraph g) { memset(g, 0xff, sizeof *g); free(g); return CUDA_SUCCESS; }
CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
    WORKS;
    CUgraph g = (CUgraph)e;
    for (int i = 0; i < g->n; i++) run(g->list[i]);
    return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec e) { free(e); return CUDA_SUCCESS; }
