package partition

// hierarchy is a graph and its successively coarser versions. All memory is allocated at
// once, by the size of the graph alone, so it is known before the work begins.
type hierarchy struct {
	levels      []level
	clusterer   *clusterer
	contractor  *contractor
	constraints int
	indices     []uint32
	edgeWeights []uint32
	indptr      []int64
	weights     []uint32
	labels      []uint32
}

// level is a graph and the mapping of its vertices to the next coarser one.
type level struct {
	graph Graph
	label []uint32 // nil in the coarsest
}

func newHierarchy(c crew, g *Graph) *hierarchy {
	n, m := g.vertices(), len(g.Indices)
	coarse := n + n/2 + 2
	h := &hierarchy{
		constraints: g.Constraints,
		clusterer:   newClusterer(c, n, g.Constraints),
		indices:     make([]uint32, 2*m), edgeWeights: make([]uint32, 2*m),
		indptr: make([]int64, coarse+64), weights: make([]uint32, coarse*g.Constraints),
		labels: make([]uint32, n+coarse),
	}
	h.contractor = newContractor(c, n, h.clusterer.tallies)
	h.levels = append(h.levels, level{graph: *g})
	return h
}

// coarsen adds levels until one has at most enough vertices, or coarsening stalls.
func (h *hierarchy) coarsen(enough int, limit []int64, seed uint64) {
	// The refinement of the coarsest level needs as much room as its contraction would.
	defer func() {
		for !h.room(0) && len(h.levels) > 2 {
			h.leaveOut(len(h.levels) - 2)
		}
	}()
	for {
		g := &h.levels[len(h.levels)-1].graph
		n := g.vertices()
		if n <= enough || len(h.levels) >= 60 {
			return
		}
		clusters := h.clusterer.cluster(g, limit, randomMix(seed, uint64(len(h.levels))))
		if clusters > n-n/20 || h.clusterer.crew.ctx.Err() != nil {
			return
		}
		if !h.add(clusters) {
			return
		}
	}
}

// add contracts the coarsest level by the clusterer's labels. If there is no room for
// another level it drops finer ones, but never the graph itself.
func (h *hierarchy) add(clusters int) bool {
	for !h.room(clusters) {
		if len(h.levels) < 3 {
			return false
		}
		h.leaveOut(len(h.levels) - 2)
	}
	last := &h.levels[len(h.levels)-1]
	vertices, edges := h.used(len(h.levels))
	n, m := last.graph.vertices(), len(last.graph.Indices)
	last.label = h.labels[h.labelled(len(h.levels)-1):][:n]
	copy(last.label, h.clusterer.label[:n])
	next := Graph{
		Indptr:      h.indptr[vertices+len(h.levels):][:clusters+1],
		Indices:     h.indices[edges:][:m],
		EdgeWeights: h.edgeWeights[edges:][:m],
		Weights:     h.weights[vertices*h.constraints:][:clusters*h.constraints],
	}
	h.contractor.contract(&last.graph, last.label, clusters, &next)
	h.levels = append(h.levels, level{graph: next})
	return h.clusterer.crew.ctx.Err() == nil
}

// used returns the vertices and edges of the first count levels, without the graph
// itself.
func (h *hierarchy) used(count int) (vertices, edges int) {
	for _, l := range h.levels[1:count] {
		vertices += l.graph.vertices()
		edges += len(l.graph.Indices)
	}
	return vertices, edges
}

// labelled returns the number of labels of the first count levels.
func (h *hierarchy) labelled(count int) (sum int) {
	for _, l := range h.levels[:count] {
		sum += l.graph.vertices()
	}
	return sum
}

// room reports whether the coarsest level can be contracted, which temporarily needs as
// many edges again.
func (h *hierarchy) room(clusters int) bool {
	vertices, edges := h.used(len(h.levels))
	m := len(h.levels[len(h.levels)-1].graph.Indices)
	return edges+m <= len(h.indices) && (vertices+clusters)*h.constraints <= len(h.weights)
}

// leaveOut removes level i, neither the first nor the last, and maps finer levels past
// it.
func (h *hierarchy) leaveOut(i int) {
	below, gone, above := &h.levels[i-1], &h.levels[i], &h.levels[i+1]
	for v, at := range below.label {
		below.label[v] = gone.label[at]
	}
	vertices, edges := h.used(i)
	n, m := above.graph.vertices(), len(above.graph.Indices)
	moved := Graph{
		Constraints: h.constraints,
		Indptr:      h.indptr[vertices+i:][:n+1],
		Indices:     h.indices[edges:][:m],
		EdgeWeights: h.edgeWeights[edges:][:m],
		Weights:     h.weights[vertices*h.constraints:][:n*h.constraints],
	}
	copy(moved.Indptr, above.graph.Indptr)
	copy(moved.Indices, above.graph.Indices)
	copy(moved.EdgeWeights, above.graph.EdgeWeights)
	copy(moved.Weights, above.graph.Weights)
	h.levels[i] = level{graph: moved}
	h.levels = h.levels[:i+1]
}

// free returns the part of the edges' memory that level i and the finer levels leave
// unused: at least as much as level i has edges. It may be used once the coarser levels
// are no longer needed.
func (h *hierarchy) free(i int) (a, b []uint32) {
	_, edges := h.used(i + 1)
	return h.indices[edges:], h.edgeWeights[edges:]
}
