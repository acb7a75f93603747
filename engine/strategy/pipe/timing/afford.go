package timing

import (
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
)

// Choose returns the shards of a node that its layers are timed on, and the memory that this
// takes: at most four, evenly spaced, of those that can be computed in so many bytes. Rows of
// sparse features have so many entries; 0: they are dense.
func Choose(own []int, c *census.Census, m *nn.Model, entries float64, room uint64) (shards []int, most uint64) {
	needs := map[int]uint64{}
	for _, shard := range own {
		if c.Vertices(shard) == 0 {
			continue
		}
		if needs[shard] = bytes(shard, c, m, entries); needs[shard] <= room {
			shards = append(shards, shard)
		}
	}
	shards = spread(shards, timedShards)
	for _, shard := range shards {
		most = max(most, needs[shard])
	}
	return shards, most
}

// bytes returns what it takes to time layers on a shard: all of them, forward and backward, of
// which each gathers from, and scatters to, a number of rows, and the shard's features.
func bytes(shard int, c *census.Census, m *nn.Model, entries float64) uint64 {
	infos, total := m.Stages(), int(c.Firsts[len(c.Firsts)-1])
	size := nn.Size{Targets: c.Vertices(shard), Sources: c.Sources[shard], Entries: c.Entries[shard]}
	in := nn.InputSize{Sparse: entries > 0, Entries: int(float64(size.Sources) * entries)}
	needs, shared := m.ForecastPart(0, len(infos), in, size)
	needs += shared
	if !in.Sparse {
		read := size.Targets
		if infos[0].Hops > 0 {
			read = size.Sources
		}
		needs += 4 * read * infos[0].In
	}
	// The block with its transpose, and where its sources lie. That of the shard before is there
	// until it is collected.
	needs += 2 * (16*size.Entries + 12*size.Sources)
	level := map[int]bool{} // layers of one width share the rows
	for s, info := range infos {
		if s > 0 && info.Hops > 0 {
			needs += 4 * size.Sources * info.In * 2
			if !level[info.In] {
				needs += 4 * max(size.Targets, min(total, mostRows)) * info.In * 2
				level[info.In] = true
			}
		}
	}
	return uint64(needs)
}
