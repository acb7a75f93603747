//go:build cuda

#include "blas.h"

#include <dlfcn.h>

static void *library;

int hopmesh_blas_open(const char *path, const char **problem) {
    if (library == NULL) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) *problem = dlerror();
    return library != NULL;
}

#define FIND(type, name)                                   \
    int(*name) type = (int(*) type)dlsym(library, #name); \
    if (name == NULL) return -1

int hopmesh_blas_destroy(void *handle) {
    FIND((void *), cublasDestroy_v2);
    return cublasDestroy_v2(handle);
}

int hopmesh_blas_create(void **handle, CUstream stream, CUdeviceptr workspace, size_t bytes) {
    FIND((void **), cublasCreate_v2);
    FIND((void *, CUstream), cublasSetStream_v2);
    FIND((void *, void *, size_t), cublasSetWorkspace_v2);
    int code = cublasCreate_v2(handle);
    if (code != 0) return code;
    code = cublasSetStream_v2(*handle, stream);
    if (code == 0) code = cublasSetWorkspace_v2(*handle, (void *)workspace, bytes);
    if (code != 0) hopmesh_blas_destroy(*handle);
    return code;
}

int hopmesh_blas_version(void *handle, int *version) {
    FIND((void *, int *), cublasGetVersion_v2);
    return cublasGetVersion_v2(handle, version);
}

int hopmesh_blas_product(void *handle, int transposedA, int transposedB, int m, int n, int k, CUdeviceptr a, int lda, CUdeviceptr b, int ldb,
                         float beta, CUdeviceptr c, int ldc, int compute) {
    enum { R_32F = 0, GEMM_DEFAULT = -1 };
    static _Atomic(void *) found;
    int (*gemm)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *, void *, int, int, int, int);
    if (found == NULL) found = dlsym(library, "cublasGemmEx");
    if (found == NULL) return -1;
    *(void **)&gemm = found;
    float one = 1.f;
    return gemm(handle, transposedA, transposedB, m, n, k, &one, (void *)a, R_32F, lda, (void *)b, R_32F, ldb, &beta, (void *)c, R_32F, ldc, compute,
                GEMM_DEFAULT);
}
