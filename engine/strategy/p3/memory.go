package p3

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// room returns so many bytes, aligned for any number; the content may be lost.
func room(b []byte, bytes int) []byte {
	if cap(b) >= bytes {
		return b[:bytes]
	}
	return plain.Room(bytes + bytes/8)[:bytes]
}

// resize returns a slice of n elements with any or the old content.
func resize[E any](s []E, n int) []E { return slices.Grow(s[:0], n)[:n] }

// fits returns an error if columns take more than the memory that is left; 0: what the
// machine has.
func fits(needs, memory uint64) error {
	has := budget.Left(memory, 0)
	if needs <= has {
		return nil
	}
	return &budget.Short{
		Cause: fmt.Sprintf("this node's columns of the features of all vertices take %s of memory and %s are left", budget.Format(needs), budget.Format(has)),
		Needs: needs, Has: has,
		Advice: []budget.Advice{"share the job among more nodes", budget.More(memory > 0), "choose another strategy, such as leap"},
	}
}
