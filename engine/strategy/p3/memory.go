package p3

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/headroom"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// room makes place for so many bytes, where any number may begin; what was there may be
// lost.
func room(b []byte, bytes int) []byte {
	if cap(b) >= bytes {
		return b[:bytes]
	}
	return plain.Room(bytes + bytes/8)[:bytes]
}

// resize returns a slice of n elements that hold anything, or what they held.
func resize[E any](s []E, n int) []E { return slices.Grow(s[:0], n)[:n] }

// fits says what is short of what columns take.
func fits(needs, memory uint64) error {
	advice := "allow more with `hopmesh agent --memory`"
	if memory == 0 {
		memory, advice = headroom.Available(), "free some"
	}
	if needs <= memory {
		return nil
	}
	const mib = 1 << 20
	return fmt.Errorf("this node's columns of the features of all vertices take %.1f MiB of memory and %.1f MiB are left: share the job among more nodes, %s, or choose another strategy, such as leap",
		float64(needs)/mib, float64(memory)/mib, advice)
}
