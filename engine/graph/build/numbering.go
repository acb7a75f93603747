package build

import "fmt"

// A numbering assigns new ids: each vertex goes to the shard of its part, after the
// vertices of that part that precede it in the source.
type numbering struct {
	part  []uint16 // by the source's vertex
	first []uint32 // the first new id of each shard, then the end
}

// newNumbering checks the partitioner's result and counts the vertices of each part.
func newNumbering(part []uint16, vertices uint32, shards int) (*numbering, error) {
	if len(part) != int(vertices) {
		return nil, fmt.Errorf("the partitioner placed %d of %d vertices", len(part), vertices)
	}
	counts := make([]uint32, shards)
	for v, p := range part {
		if int(p) >= shards {
			return nil, fmt.Errorf("the partitioner put vertex %d into shard %d of %d", v, p, shards)
		}
		counts[p]++
	}
	n := &numbering{part: part, first: make([]uint32, shards+1)}
	for p, c := range counts {
		n.first[p+1] = n.first[p] + c
	}
	return n, nil
}

// ids returns the new id of each of the source's vertices.
func (n *numbering) ids() []uint32 {
	ids := make([]uint32, len(n.part))
	next := append([]uint32{}, n.first...)
	for v, p := range n.part {
		ids[v] = next[p]
		next[p]++
	}
	return ids
}

// order returns the source vertex of each new id. Within a shard they ascend.
func (n *numbering) order() []uint32 {
	order := make([]uint32, len(n.part))
	next := append([]uint32{}, n.first...)
	for v, p := range n.part {
		order[next[p]] = uint32(v)
		next[p]++
	}
	return order
}

// largest returns the number of vertices of the largest shard.
func (n *numbering) largest() int {
	most := uint32(0)
	for p := range len(n.first) - 1 {
		most = max(most, n.first[p+1]-n.first[p])
	}
	return int(most)
}
