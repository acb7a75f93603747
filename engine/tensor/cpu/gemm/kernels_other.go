//go:build !amd64 && !arm64

package gemm

import "github.com/hopmesh/hopmesh/engine/tensor/cpu/family"

func assembled(family.Family) *kernels { return nil }

func forBF16() *kernels { return &generic }
