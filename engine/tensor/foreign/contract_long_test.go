//go:build long

package foreign_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor/contract"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
)

func TestContract(t *testing.T) {
	d := foreign.New(2)
	defer d.Close()
	contract.Run(t, d)
	contract.Allocations(t, d)
}
