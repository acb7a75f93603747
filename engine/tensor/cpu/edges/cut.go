package edges

import "sort"

const (
	grainBytes = 1 << 20 // read by the edges of a chunk: some 80 µs
	leastEdges = 64      // minimum edges of a chunk
	mostEdges  = 1 << 14
	rowCost    = 2 // cost of a row beside its entries, in edges
)

// A cut is the division of rows and their entries into chunks, at multiples of a grain of
// cost. A row is never divided, but one with more entries than a grain is summed in
// pieces, one kernel call each.
type cut struct {
	indptr []int64 // rows+1
	grain  int64
}

// cutOf cuts by the bytes that one edge reads.
func cutOf(indptr []int64, bytes int) cut {
	return cut{indptr, int64(min(max(grainBytes/max(bytes, 1), leastEdges), mostEdges))}
}

func (c *cut) rows() int { return len(c.indptr) - 1 }

func (c *cut) cost(row int) int64 { return c.indptr[row] - c.indptr[0] + rowCost*int64(row) }

func (c *cut) chunks() int { return int((c.cost(c.rows()) + c.grain - 1) / c.grain) }

// start returns the first row of a chunk.
func (c *cut) start(chunk int) int {
	return sort.Search(c.rows(), func(row int) bool { return c.cost(row) >= int64(chunk)*c.grain })
}

// chunk returns the rows of a chunk: first to last (exclusive), then the rows up to hub,
// which is last or, if row last has more entries than a grain, last+1.
func (c *cut) chunk(chunk int) (first, last, hub int) {
	first, hub = c.start(chunk), c.start(chunk+1)
	last = hub
	if hub > first && c.indptr[hub]-c.indptr[hub-1] > c.grain {
		last--
	}
	return first, last, hub
}
