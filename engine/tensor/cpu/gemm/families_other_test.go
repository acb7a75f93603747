//go:build !amd64

package gemm

import "github.com/hopmesh/hopmesh/engine/tensor/cpu/family"

// families are all that this CPU has, unless the process is to compute with less.
func families() []family.Family { return family.Current().Within() }
