package partition

// contractor builds the graph of clusters. Its slices are scratch memory, as in
// clusterer.
type contractor struct {
	crew    crew
	member  []uint32 // the vertices by cluster
	first   []int64  // by cluster: the start of its members; one extra entry
	place   []int64  // by cluster: the start of its edges before compaction; one extra entry
	used    []uint32 // by cluster: edges
	tallies []*tally
	dense   []uint32 // by cluster: weight, for clusters with very many edges
}

func newContractor(c crew, vertices int, tallies []*tally) *contractor {
	return &contractor{
		crew: c, tallies: tallies, member: make([]uint32, vertices), used: make([]uint32, vertices),
		first: make([]int64, vertices+1), place: make([]int64, vertices+1), dense: make([]uint32, vertices),
	}
}

// contract fills to, whose slices have room for the clusters as vertices and for as many
// edges as g has. The unused rest is cut off.
func (x *contractor) contract(g *Graph, label []uint32, clusters int, to *Graph) {
	n := g.vertices()
	x.group(g, label[:n], clusters)
	to.Constraints = g.Constraints
	to.Indptr, to.Weights = to.Indptr[:clusters+1], to.Weights[:clusters*g.Constraints]
	x.crew.each(clusters, 256, func(worker, from, until int) {
		for cluster := from; cluster < until; cluster++ {
			x.merge(g, label, uint32(cluster), to, x.tallies[worker])
		}
	})
	if x.crew.ctx.Err() != nil {
		return
	}
	for cluster := range clusters {
		if x.place[cluster+1]-x.place[cluster] > tallyLimit {
			x.mergeMany(g, label, uint32(cluster), to)
		}
	}
	x.close(clusters, to)
}

// group sorts the vertices by cluster and computes an upper bound of each cluster's
// edges.
func (x *contractor) group(g *Graph, label []uint32, clusters int) {
	first, place := x.first[:clusters+1], x.place[:clusters+1]
	clear(first)
	clear(place)
	for v, cluster := range label {
		first[cluster+1]++
		place[cluster+1] += g.degree(uint32(v))
	}
	for cluster := range clusters {
		first[cluster+1] += first[cluster]
		place[cluster+1] += place[cluster]
		x.used[cluster] = 0
	}
	for v, cluster := range label {
		x.member[first[cluster]+int64(x.used[cluster])] = uint32(v)
		x.used[cluster]++
	}
}

// merge writes one cluster's weights, and its edges unless there are too many for a
// tally.
func (x *contractor) merge(g *Graph, label []uint32, cluster uint32, to *Graph, t *tally) {
	members := x.member[x.first[cluster]:x.first[cluster+1]]
	nc := g.Constraints
	weights := to.Weights[int(cluster)*nc:][:nc]
	clear(weights)
	for _, v := range members {
		for c := range weights {
			weights[c] += g.Weights[int(v)*nc+c]
		}
	}
	room := x.place[cluster+1] - x.place[cluster]
	if room > tallyLimit {
		return
	}
	t.expect(int(room))
	for _, v := range members {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if other := label[g.Indices[e]]; other != cluster {
				t.add(other, g.weightOf(e))
			}
		}
	}
	copy(to.Indices[x.place[cluster]:], t.keys)
	copy(to.EdgeWeights[x.place[cluster]:], t.sums)
	x.used[cluster] = uint32(len(t.keys))
	t.reset()
}

// mergeMany writes the edges of a cluster with more edges than a tally holds.
func (x *contractor) mergeMany(g *Graph, label []uint32, cluster uint32, to *Graph) {
	indices := to.Indices[x.place[cluster]:x.place[cluster+1]]
	count := 0
	for _, v := range x.member[x.first[cluster]:x.first[cluster+1]] {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			other := label[g.Indices[e]]
			if other == cluster {
				continue
			}
			if x.dense[other] == 0 {
				indices[count] = other
				count++
			}
			x.dense[other] = saturate(x.dense[other], g.weightOf(e))
		}
	}
	for i, other := range indices[:count] {
		to.EdgeWeights[x.place[cluster]+int64(i)] = x.dense[other]
		x.dense[other] = 0
	}
	x.used[cluster] = uint32(count)
}

// close compacts the clusters' edges.
func (x *contractor) close(clusters int, to *Graph) {
	end := int64(0)
	for cluster := range clusters {
		from, count := x.place[cluster], int64(x.used[cluster])
		to.Indptr[cluster] = end
		copy(to.Indices[end:end+count], to.Indices[from:from+count])
		copy(to.EdgeWeights[end:end+count], to.EdgeWeights[from:from+count])
		end += count
	}
	to.Indptr[clusters] = end
	to.Indices, to.EdgeWeights = to.Indices[:end], to.EdgeWeights[:end]
}
