package edges

import "sort"

const (
	grainBytes = 1 << 20 // that the edges of a chunk read: some 80 µs
	leastEdges = 64      // edges of a chunk
	mostEdges  = 1 << 14
	rowCost    = 2 // what a row costs beside its entries, in edges
)

// A cut is how rows and their entries are cut into chunks: at multiples of a grain
// of cost. A row is never cut, but one with more entries than a grain is summed in
// pieces, one call of a kernel each.
type cut struct {
	indptr []int64 // rows+1
	grain  int64
}

// cutOf cuts by what one edge reads.
func cutOf(indptr []int64, bytes int) cut {
	return cut{indptr, int64(min(max(grainBytes/max(bytes, 1), leastEdges), mostEdges))}
}

func (c *cut) rows() int { return len(c.indptr) - 1 }

func (c *cut) cost(row int) int64 { return c.indptr[row] - c.indptr[0] + rowCost*int64(row) }

func (c *cut) chunks() int { return int((c.cost(c.rows()) + c.grain - 1) / c.grain) }

// start is the first row of a chunk.
func (c *cut) start(chunk int) int {
	return sort.Search(c.rows(), func(row int) bool { return c.cost(row) >= int64(chunk)*c.grain })
}

// chunk is its rows: those from first to last, and then hub, which is last or one
// row more with more entries than a grain.
func (c *cut) chunk(chunk int) (first, last, hub int) {
	first, hub = c.start(chunk), c.start(chunk+1)
	last = hub
	if hub > first && c.indptr[hub]-c.indptr[hub-1] > c.grain {
		last--
	}
	return first, last, hub
}
