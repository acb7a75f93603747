//go:build cuda

package sample

import (
	"math"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/keyed"
)

// layout is the layout of a batch's header, the input and output of the kernels, in words
// of 8 bytes:
//
//	0: the first seed vertex that occurs twice, or MaxInt32
//	1: the number of seed vertices
//	2+4h..5+4h: for hop h its entries, those that are stored (all or none), its new
//	            sources, and the vertices after it; for a hop without a block only
//	            the first
//	then the key of each hop, and the seed vertices, of 4 bytes each
//
// So the arguments of kernels are the same in all batches.
type layout struct{ hops, keys int }

const perHop = 4

// told returns the number of words that kernels fill.
func (l layout) told() int { return 2 + perHop*l.keys }

func (l layout) keyWord(hop int) int { return l.told() + hop }
func (l layout) roots() int          { return 8 * (l.told() + l.keys) } // in bytes

func wantedWord(hop int) int   { return 2 + perHop*hop }
func heldWord(hop int) int     { return wantedWord(hop) + 1 }
func newWord(hop int) int      { return wantedWord(hop) + 2 }
func verticesWord(hop int) int { return 1 + perHop*hop } // before the hop

// fill writes the input of the kernels; key is that of the step.
func (l layout) fill(pinned driver.Pinned, key keyed.Key, roots []uint32) {
	counts := driver.Numbers[int64](pinned.Slice(0, 8*l.told()))
	clear(counts)
	counts[0], counts[1] = math.MaxInt32, int64(len(roots))
	keys := driver.Numbers[uint64](pinned.Slice(8*l.told(), l.roots()))
	for i := range keys {
		keys[i] = uint64(key.With(uint64(i)))
	}
	copy(driver.Numbers[uint32](pinned.Slice(l.roots(), pinned.Len())), roots)
}

// counts is the output of the kernels.
type counts []int64

func (c counts) again() int64         { return c[0] }
func (c counts) wanted(hop int) int64 { return c[wantedWord(hop)] }
func (c counts) vertices(hop int) int { return int(c[verticesWord(hop)]) }
