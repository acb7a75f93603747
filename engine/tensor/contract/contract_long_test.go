//go:build long

package contract

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

func TestReference(t *testing.T) { Run(t, reference.New()) }

func TestTwoReferencesAreTheSame(t *testing.T) {
	for _, c := range checks[:8] {
		c.on(t, reference.New(), reference.New(), 0)
	}
}
