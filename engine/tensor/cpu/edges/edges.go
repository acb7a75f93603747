package edges

import (
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
)

// Edges implements tensor.Aggregations and tensor.Attentions on a pool of workers.
type Edges struct {
	pool   *workers.Pool
	family family.Family
	each   []scratch // one per worker

	// The states of operations, kept here to avoid allocations.
	aggregation aggregation
	shares      shares
	maximum     maximum
	maximumBack maximumBack
	dots        dots
	dotsBack    dotsBack
	attention   attention
	sources     sources

	inverse []float32 // 1 over the number of entries of each row
	kept    []float32 // of each entry: kept by attention's first backward pass for the second
	partial []float32 // sums of chunks, yet to be added up
	inOrder []int32   // 0, 1, 2
	single  []int64   // 0, 1, 2: starts of rows of one entry
	zeros   []int32
	lanes   []int32 // of each column, for kernels with several heads
	lanesOf [2]int  // the columns and heads of lanes
}

// scratch is the memory of one worker.
type scratch struct {
	span    span
	weights []float32 // of the current entries
	more    []float32 // as many again
	scale   []float32 // of the current rows
	row     []float32 // a row that is summed in several calls
	sum     []float32 // the row being summed
	heads   []float32 // a few numbers per head
	ends    [2]int64
	_       [128]byte // avoids false sharing between workers
}

// New allocates the scratch memory of operations.
func New(pool *workers.Pool) *Edges { return newOf(pool, family.Current()) }

func newOf(pool *workers.Pool, f family.Family) *Edges {
	return &Edges{pool: pool, family: f, each: make([]scratch, pool.Size())}
}

// grown returns s with room for n elements and for what vectors read or write beyond
// them. Growing discards the contents.
func grown[E any](s []E, n int) []E {
	if n += overrun; cap(s) < n {
		return make([]E, n+n/4)
	}
	return s[:cap(s)]
}

// overrun is the number of elements that a vector may reach beyond a row in scratch
// memory.
const overrun = 16

// does reports whether the epilogue does anything.
func does(e *tensor.Epilogue) bool {
	return e != nil && (!e.Bias.None() || e.Activation != tensor.Linear || e.Dropout.P > 0)
}

func must(ok bool, what string) {
	if !ok {
		panic("edges: " + what)
	}
}

func mustBe(m tensor.Matrix, rows, cols int, what string) {
	must(m.Rows == rows && m.Cols == cols, what)
}

// ready makes room for the largest chunk of a cut in every worker's memory: any worker
// may get any chunk, and steady state must not allocate.
func (e *Edges) ready(c cut, heads, cols int) {
	// Rows end in the next chunk at most, unless they are hubs.
	entries := min(2*int(c.grain), int(c.indptr[c.rows()]-c.indptr[0]))
	rows := min(int(c.grain)/rowCost+1, c.rows())
	for i := range e.each {
		s := &e.each[i]
		s.weights, s.more = grown(s.weights, entries*heads), grown(s.more, entries*heads)
		s.scale, s.heads = grown(s.scale, rows*heads), grown(s.heads, heads)
		s.row, s.sum = grown(s.row, cols), grown(s.sum, cols)
	}
}
