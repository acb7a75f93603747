package partition

// MultilevelMemory returns the peak memory of Multilevel in bytes, including the graph,
// for that many vertices, edges in Indices and constraints. It excludes the graph's own
// edge weights.
func MultilevelMemory(vertices uint32, edges uint64, constraints int) uint64 {
	n, m, nc := uint64(vertices), edges, uint64(constraints)
	const word, long = 4, 8
	graph := n*(long+nc*word) + m*word
	levels := (n+n/2)*(long+word+nc*word) + n*word + 4*m*word
	scratch := n*(5+nc)*word + n*(3*word+2*long) // clusterer and contractor
	refiner := n * (2 + word + word + long + 1 + long)
	parts := n * 4
	// The initial partition: graphs of the halves, of their halves, and coarser versions
	// of each. They are made one after the other but all counted, since the collector may
	// run late.
	first := min(m, max(thinLeast, m/thinShare)) * 2 * word * 10
	return graph + levels + scratch + refiner + parts + first + 4<<20
}
