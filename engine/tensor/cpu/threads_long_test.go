//go:build long

package cpu_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor/contract"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

func TestThreadsDoNotMatter(t *testing.T) {
	one := cpu.New(1)
	defer one.Close()
	for _, threads := range []int{8} {
		d := cpu.New(threads)
		defer d.Close()
		contract.Same(t, one, d)
	}
}
