//go:build long

package foreign_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor/contract"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
)

func TestContract(t *testing.T) {
	d := foreign.New(2)
	defer d.Close()
	contract.Run(t, d)
	contract.Allocations(t, d)
}

func TestBitsAreTheProcessors(t *testing.T) {
	d, c := foreign.New(2), cpu.New(1)
	defer d.Close()
	defer c.Close()
	contract.Same(t, d, c)
}
