// How calls of cuBLAS reach its library: opened by name when it is asked for, never
// needed. Names, types and numbers are those of its interface, in versions 12 and 13.
#pragma once

#include <cuda.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

// hopmesh_blas_open opens a library, once; NULL: what it said is in problem.
int hopmesh_blas_open(const char *path, const char **problem);

// What follows returns cublasStatus_t, 0 for success, or -1 if the library has no such
// function.
int hopmesh_blas_create(void **handle, CUstream stream, CUdeviceptr workspace, size_t bytes);
int hopmesh_blas_destroy(void *handle);
int hopmesh_blas_version(void *handle, int *version);

// hopmesh_blas_product is c = op(a)*op(b) + beta*c, of floats in columns as cuBLAS has
// them.
int hopmesh_blas_product(void *handle, int transposedA, int transposedB, int m, int n, int k, CUdeviceptr a, int lda, CUdeviceptr b, int ldb,
                         float beta, CUdeviceptr c, int ldc, int compute);

#pragma GCC visibility pop
