package grappa

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// keep returns base and swept shards with the halo, and which share of that is there. A
// capped halo keeps the vertices with the smallest numbers under the key of the super-epoch:
// each is as probable as any other, and the choice does not depend on the node.
func (b *Builder) keep() (has *vicinity.Set, share float64) {
	most, all := b.cap(), b.reach.Len()-b.inner.Len()
	if most < 0 || all <= most {
		return b.reach, 1
	}
	halo := make([]uint32, 0, all)
	for v := range b.reach.Without(b.inner) {
		halo = append(halo, v)
	}
	key := keyed.New(b.o.Seed, keyed.Halo).With(uint64(b.o.Super))
	numbers := make([]uint64, len(halo))
	for i, v := range halo {
		numbers[i] = uint64(key.With(uint64(v)))
	}
	sorted := slices.Clone(numbers)
	slices.Sort(sorted)
	least := sorted[most-1]
	has = b.inner.Clone()
	for i, v := range halo {
		if numbers[i] <= least {
			has.Add(v)
		}
	}
	return has, float64(most) / float64(all)
}

// cap returns the bound of halo rows, negative if there is none.
func (b *Builder) cap() (rows int) {
	switch s := b.o.Settings; {
	case s.Loader != HaloSampled:
		rows = -1
	case s.Cap > 0:
		rows = s.Cap
	default:
		rows = max(1, b.inner.Len())
	}
	if most := b.o.Most; most > 0 && (rows < 0 || most < rows) {
		rows = most
	}
	return rows
}
