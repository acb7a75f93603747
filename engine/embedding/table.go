package embedding

import (
	"math"
	"sync"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// Options describe a table.
type Options struct {
	Vertices, Columns int
	Seed              uint64
	Optimizer         nn.OptimizerSpec
	// Layout says whose the vertices are; nil: all are this node's. Where rows are Apart, a node has those of
	// the shards that it owns, and of those of the node before it in the run's list. Self is this node.
	Layout *peer.Layout
	Self   int
	Apart  bool
	// Shards is how many parts of its own a node adds to a step at most.
	Shards int
	// Features is how many columns of features precede the learnt ones. Then only those vertices
	// learn a row of which one of the columns Bare is not 0.
	Features int
	Bare     []int
	// Device updates rows; nil, or one that does not compute with 32-bit numbers: one thread does.
	Device tensor.Device
}

// A Table has a row for each vertex, with what the optimizer keeps of it. All nodes of a run have
// the same one and keep it the same, or each row is on two of them: a node that is lost takes nothing
// with it. One goroutine at a time uses it, but anyone may read rows between two updates. The methods
// of a nil Table do nothing.
type Table struct {
	o       Options
	held    *held   // which rows are here; nil: all
	stream  *stream // brings the others for a file with all; nil: files have those that are here
	device  tensor.Device
	rows    []float32
	moments []moment
	best    []float32 // rows of the best epoch; empty before the first evaluation
	lacks   []bool    // of each shard: its rows have yet to come from a checkpoint; nil: none have
	unsound bool      // a number is not finite
	fixed   []float32 // features of all vertices; empty where they have none
	learns  []bool    // of each vertex: it has a learnt row; nil: all have one

	step
	sharing
	serving
}

// A moment is what the optimizer keeps of all rows.
type moment struct {
	name string
	rows []float32
}

// New returns a table whose rows are drawn by seed and vertex, the same on any number of nodes.
func New(o Options) *Table {
	t := &Table{o: o, device: o.Device}
	if t.device == nil || t.device.Type() != tensor.F32 {
		t.device = cpu.New(1)
	}
	if o.Apart {
		t.held = newHeld(o.Layout, o.Self)
	}
	t.rows = make([]float32, t.here()*o.Columns)
	for _, name := range o.Optimizer.Moments() {
		t.moments = append(t.moments, moment{name, make([]float32, len(t.rows))})
	}
	t.draw()
	t.fixed = make([]float32, o.Vertices*o.Features)
	t.step.init(&t.o, t.here(), t.held.messages())
	return t
}

// Reset has the rows be those of a new table that nothing was learnt of. Those that vertices do not learn
// stay zeros.
func (t *Table) Reset() {
	t.best, t.lacks, t.unsound = t.best[:0], nil, false
	for _, m := range t.moments {
		clear(m.rows)
	}
	t.draw()
	for v, learns := range t.learns {
		if !learns {
			clear(t.row(t.rows, v))
		}
	}
}

// here returns how many rows this node has.
func (t *Table) here() int {
	if t.held != nil {
		return t.held.rows
	}
	return t.o.Vertices
}

// draw sets the initial rows: uniform numbers with a variance of 1/columns, so that the expected
// length of a row is 1.
func (t *Table) draw() {
	const atOnce = 1 << 14
	key, bound := keyed.New(t.o.Seed, keyed.Learnt), math.Sqrt(3/float64(t.o.Columns))
	var running sync.WaitGroup
	t.held.each(t.o.Vertices, func(first uint32, place, rows int) {
		for from := 0; from < rows; from += atOnce {
			running.Go(func() {
				for i := from; i < min(from+atOnce, rows); i++ {
					draws := key.With(uint64(first) + uint64(i)).Draws()
					row := t.row(t.rows, place+i)
					for c := range row {
						row[c] = float32(bound * (2*draws.Float64() - 1))
					}
				}
			})
		}
	})
	running.Wait()
}

// row returns the row at a place among those that are here.
func (t *Table) row(all []float32, place int) []float32 {
	return all[place*t.o.Columns:][:t.o.Columns]
}

// Apart reports whether each node has the rows of some shards only.
func (t *Table) Apart() bool { return t != nil && t.held != nil }

// Numbers returns the numbers of the rows that are here, in the order of the vertices; nil if there is
// no table.
func (t *Table) Numbers() []float32 {
	if t == nil {
		return nil
	}
	return t.rows
}

// KeepBest keeps the rows as those of the best epoch.
func (t *Table) KeepBest() {
	if t != nil {
		t.best = append(t.best[:0], t.rows...)
	}
}

// Sound reports whether all numbers are finite.
func (t *Table) Sound() bool { return t == nil || !t.unsound }

// Bytes returns the memory of so many rows of a table, with features that precede them and without that
// of steps.
func Bytes(rows uint64, features, columns int, of nn.OptimizerSpec) uint64 {
	if columns == 0 {
		return 0
	}
	const rowsAndBest, place, learns = 2, 4, 1
	return rows * (4*uint64(features) + uint64(rowsAndBest+len(of.Moments()))*4*uint64(columns) + place + learns)
}
