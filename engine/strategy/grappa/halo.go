package grappa

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

// keep returns the halo, ascending, and its share of the whole one. A capped halo keeps
// the vertices with the smallest numbers under the key of the super-epoch: each is as
// probable as any other, and the choice does not depend on the node.
func (b *Builder) keep() (halo []uint32, share float64) {
	for i := range b.reach {
		for v := range (bits{b.reach[i] &^ b.inner[i]}).all() {
			halo = append(halo, uint32(64*i)+v)
		}
	}
	most := b.cap()
	if most < 0 || len(halo) <= most {
		return halo, 1
	}
	key := keyed.New(b.o.Seed, keyed.Halo).With(uint64(b.o.Super))
	numbers := make([]uint64, len(halo))
	for i, v := range halo {
		numbers[i] = uint64(key.With(uint64(v)))
	}
	sorted := slices.Clone(numbers)
	slices.Sort(sorted)
	least := sorted[most-1]
	kept := make([]uint32, 0, most)
	for i, v := range halo {
		if numbers[i] <= least {
			kept = append(kept, v)
		}
	}
	return kept, float64(most) / float64(len(halo))
}

// cap returns the bound of halo rows, negative if there is none.
func (b *Builder) cap() (rows int) {
	switch s := b.o.Settings; {
	case s.Loader != HaloSampled:
		rows = -1
	case s.Cap > 0:
		rows = s.Cap
	default:
		rows = max(1, b.inner.count())
	}
	if most := b.o.Most; most > 0 && (rows < 0 || most < rows) {
		rows = most
	}
	return rows
}
