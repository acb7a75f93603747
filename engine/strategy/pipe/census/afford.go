package census

import "github.com/hopmesh/hopmesh/engine/nn"

// Affordable returns those of some shards that can be computed by themselves in so many bytes:
// by all layers, forward and backward, of which each gathers from, and scatters to, so many
// rows at most. Rows of sparse features have so many entries; 0: they are dense.
func (c *Census) Affordable(shards []int, m *nn.Model, entries float64, rows int, room uint64) (all []int) {
	infos, total := m.Stages(), int(c.Firsts[len(c.Firsts)-1])
	for _, shard := range shards {
		size := nn.Size{Targets: c.Vertices(shard), Sources: c.Sources[shard], Entries: c.Entries[shard]}
		in := nn.InputSize{Sparse: entries > 0, Entries: int(float64(size.Sources) * entries)}
		needs, shared := m.ForecastPart(0, len(infos), in, size)
		needs += shared
		for s, info := range infos {
			if s > 0 && info.Hops > 0 {
				needs += 2 * 4 * (max(size.Targets, min(total, rows)) + size.Sources) * info.In
			}
		}
		if uint64(needs) <= room {
			all = append(all, shard)
		}
	}
	return all
}
