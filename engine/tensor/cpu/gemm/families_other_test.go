//go:build !amd64

package gemm

import "github.com/hopmesh/hopmesh/engine/tensor/cpu/family"

func families() []family.Family { return []family.Family{family.Generic} }
