package edges

import (
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
)

// Edges is tensor.Aggregations and tensor.Attentions on a pool of workers.
type Edges struct {
	pool   *workers.Pool
	family family.Family
	each   []scratch // of each worker

	// What is at work, kept here so that nothing is allocated for it.
	aggregation aggregation
	shares      shares
	maximum     maximum
	maximumBack maximumBack
	dots        dots
	dotsBack    dotsBack
	attention   attention
	sources     sources

	inverse []float32 // 1 over the entries of each row
	kept    []float32 // of each entry, what attention's second pass needs of the first
	partial []float32 // sums of chunks that are yet to be added
	inOrder []int32   // 0, 1, 2
	single  []int64   // 0, 1, 2: where rows of one entry start
	zeros   []int32
	lanes   []int32 // of each column, for kernels by heads
	lanesOf [2]int  // so many columns and heads
}

// scratch is what one worker keeps between chunks.
type scratch struct {
	span    span
	weights []float32 // of the entries in hand
	more    []float32 // as many again
	scale   []float32 // of the rows in hand
	row     []float32 // a row that is summed in several calls
	sum     []float32 // a row being summed
	heads   []float32 // a few numbers of each head
	ends    [2]int64
	_       [128]byte // no two workers write to one cache line
}

// New allocates what they need beside their operands.
func New(pool *workers.Pool) *Edges { return newOf(pool, family.Current()) }

func newOf(pool *workers.Pool, f family.Family) *Edges {
	return &Edges{pool: pool, family: f, each: make([]scratch, pool.Size())}
}

// grown is s with room for n elements and what vectors read or write beyond them.
// What it holds is lost when it grows.
func grown[E any](s []E, n int) []E {
	if n += overrun; cap(s) < n {
		return make([]E, n+n/4)
	}
	return s[:cap(s)]
}

// overrun is how many elements beyond a row a vector may reach in scratch memory.
const overrun = 16

// does says whether the epilogue does anything.
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

// ready makes room, in what every worker keeps, for the largest chunk of a cut: who
// gets which is chance, and nothing is to be allocated once all have been seen.
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
