package pipe

import "math/bits"

// partsOf counts the parts that the shards of a shape are computed in, of each way, forward:
// as newWay makes them, so that what they take can be forecast of any node.
func (f *Facts) partsOf(shape *Shape) [][]part {
	if all, ok := f.parts[shape.Ways()]; ok {
		return all
	}
	all := make([][]part, shape.Ways())
	for number := range all {
		if shape.Ways() == 1 { // it sees rows of nobody
			for p := range shape.Positions() {
				first, end := shape.Shards(number, p)
				for shard := first; shard < end; shard++ {
					if n := f.Census.vertices(shard); n > 0 {
						all[number] = append(all[number], part{position: p, shard: shard, vertices: n, sources: f.Census.Sources[shard], entries: f.Census.Entries[shard]})
					}
				}
			}
			continue
		}
		all[number] = f.halves(shape, number)
	}
	if f.parts == nil {
		f.parts = map[int][][]part{}
	}
	f.parts[shape.Ways()] = all
	return all
}

// halves counts those of a way that shares its stage.
func (f *Facts) halves(shape *Shape, number int) (all []part) {
	w := &way{number: number}
	w.first, w.end, _, _ = shape.Of(number)
	w.places = make([]int32, w.own())
	halves := w.halve(&Task{Shape: shape, Topology: f.Census.topology})
	for p := range shape.Positions() {
		first, end := shape.Shards(number, p)
		for half := range 2 {
			for shard := first; shard < end; shard++ {
				vertices := halves[shard][half]
				if len(vertices) == 0 {
					continue
				}
				of := part{position: p, shard: shard, inner: half == 0, split: len(halves[shard][1-half]) > 0, vertices: len(vertices)}
				of.sources, of.entries = f.Census.around(vertices, f.Model.Form().SelfLoops)
				all = append(all, of)
			}
		}
	}
	return all
}

// around counts the rows that some vertices see, their own included, and the edges, with
// those from vertices to themselves where they are added.
func (c *Census) around(vertices []uint32, loops bool) (sources, entries int) {
	if c.marks == nil {
		c.marks = make([]uint64, (c.topology.Vertices()+63)/64)
	}
	clear(c.marks)
	for _, v := range vertices {
		c.marks[v/64] |= 1 << (v % 64)
		row, _ := c.topology.Row(int(v))
		entries += len(row)
		loop := false
		for _, u := range row {
			c.marks[u/64] |= 1 << (u % 64)
			loop = loop || uint32(u) == v
		}
		if loops && !loop {
			entries++
		}
	}
	for _, m := range c.marks {
		sources += bits.OnesCount64(m)
	}
	return sources, entries
}

// inner is the share of a position's work that no way waits with for rows of others: that of
// the way which has least of it.
func (d *draft) inner(position int) float64 {
	least := 1.0
	for _, parts := range d.partsOf(d.shape) {
		inner, all := 0, 0
		for i := range parts {
			if parts[i].position == position {
				all += parts[i].entries + parts[i].vertices
				if parts[i].inner {
					inner += parts[i].entries + parts[i].vertices
				}
			}
		}
		if all > 0 {
			least = min(least, float64(inner)/float64(all))
		}
	}
	return least
}
