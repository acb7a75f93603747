package p3

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Options configure a Front.
type Options struct {
	Model     *nn.Model
	Device    tensor.Device // of steps
	Gradients tensor.Matrix // of the model, 1 x Size
	Columns   *Columns
	Exchange  *exchange.Exchange // nil on a single node
	Work      peer.Work
	// Deterministic adds up by blocks of columns and by grains.
	Deterministic bool
	// Resample means that each batch is given the groups of all nodes (AddOf), so that
	// nodes do not exchange blocks.
	Resample bool
	// Inflight is how many batches may be under way at once; 0: one.
	Inflight int
	// Edges is how many the graph has, and Fanouts how many neighbours each hop has at most, from
	// the roots outwards (0, or none at all: all of them). They bound the blocks of other nodes.
	Edges   uint64
	Fanouts []int
}

// A Front computes the first layer of a run, as one node sees it. Ahead may be called
// by several goroutines, each with a batch; the other methods by one.
type Front struct {
	model     *nn.Model
	device    tensor.Device
	gradients tensor.Matrix
	exchange  *exchange.Exchange
	work      peer.Work

	self, nodes   int
	deterministic bool
	resample      bool

	terms []term
	kinds []kind
	shape
	columns *Columns
	leaves  []leaf            // of this node's columns
	spans   [][]exchange.Span // of each node: sums of its leaves, which it sends
	shares  []span            // of each node
	numbers int               // bound of the groups' numbers
	bound   bound

	turn    turn
	ring    [2]message // messages that others may still take
	offered int
	blocks  takes

	arena, scratch tensor.Arena
	tree           tree
	takes          takes
	hangar         []*flight // free flights
	air            []*Batch  // batches under way
	theirs         [][]byte  // errors of each node's groups; then gradients
	sent           [2][]byte
	flat, errors   tensor.Matrix // scratch matrix, and the errors of one group
	targets        tensor.CSR    // of sparse rows
	tags           []exchange.Tag
	waited         time.Duration
}

// A shape is that of the first layer's sum.
type shape struct {
	cols    int
	sources bool // it has a row for each source of a block; else for each target
}

// height returns how many rows the sum has over a block.
func (s shape) height(b *sample.Block) int {
	if s.sources {
		return b.Cols
	}
	return b.Rows
}

// A term is one of the front's, and the kind of its rows.
type term struct {
	nn.Term
	kind int
	at   int // in a row of gradients of this node's columns
}

// A kind is how terms transform rows before they multiply them. Terms may share one.
type kind struct {
	own   float64
	edges bool
	how   tensor.Aggregation
}

// A message holds the blocks sent to other nodes.
type message struct {
	head [headSize]byte
	body []byte
	tags []exchange.Tag
}

// New returns a front, or an error if the model has none.
func New(o Options) (*Front, error) {
	front, err := o.Model.Front()
	if err != nil {
		return nil, Check(o.Model)
	}
	nodes := len(o.Work.Nodes)
	if nodes > 1 && o.Exchange == nil {
		return nil, errors.New("p3: several nodes have no way to each other")
	}
	columns := front.Terms[0].Param.Rows
	f := &Front{
		model: o.Model, device: o.Device, gradients: o.Gradients, exchange: o.Exchange,
		work: o.Work, self: o.Work.Self, nodes: nodes, deterministic: o.Deterministic, resample: o.Resample,
		shape: shape{front.Cols, front.Sources}, columns: o.Columns,
		leaves:  leaves(columns, o.Work.Self, nodes, o.Deterministic),
		spans:   exchange.Spans(holders(columns, nodes, o.Deterministic), nodes),
		theirs:  make([][]byte, nodes),
		numbers: nodes,
	}
	if f.deterministic {
		f.numbers = len(o.Columns.layout.Owners)
	}
	f.bound = bound{vertices: o.Columns.layout.Vertices(), edges: o.Model.Hops() > 0, groups: 1, stored: o.Edges, fanouts: o.Fanouts, hops: o.Model.Hops()}
	if f.deterministic {
		f.bound.groups = f.numbers
	}
	for node := range nodes {
		f.shares = append(f.shares, share(columns, node, nodes))
	}
	if own := f.shares[f.self]; own != o.Columns.span {
		return nil, fmt.Errorf("p3: columns %d to %d are here and %d to %d are this node's", o.Columns.first, o.Columns.end(), own.first, own.end())
	}
	at := 0
	for _, t := range front.Terms {
		k := kind{t.Own, t.Edges, t.How}
		if !slices.Contains(f.kinds, k) {
			f.kinds = append(f.kinds, k)
		}
		f.terms = append(f.terms, term{t, slices.Index(f.kinds, k), at})
		at += o.Columns.cols * t.Param.Cols
	}
	if o.Inflight > MostInflight {
		return nil, fmt.Errorf("p3: %d steps can't be under way at once", o.Inflight)
	}
	for range max(1, o.Inflight) {
		f.hangar = append(f.hangar, newFlight(o.Exchange, nodes))
	}
	f.blocks.init(o.Exchange, nodes)
	f.takes.init(o.Exchange, nodes)
	if f.arena, err = o.Device.NewArena(0); err != nil {
		return nil, err
	}
	if f.scratch, err = o.Device.NewArena(0); err != nil {
		f.arena.Close()
		return nil, err
	}
	return f, nil
}

// Close releases its memory.
func (f *Front) Close() {
	f.Stop()
	f.arena.Close()
	f.scratch.Close()
}

// Cols returns how many columns the first layer's sum has.
func (f *Front) Cols() int { return f.cols }

// Finite reports whether all features that a batch reads of this node's columns are
// finite, where they are dense.
func (f *Front) Finite(b *Batch) bool {
	for _, g := range b.groups {
		for _, rows := range g.dense {
			if !f.columns.sparse && !f.device.Finite(rows) {
				return false
			}
		}
	}
	return true
}

// Computes reports whether this node has columns.
func (f *Front) Computes() bool { return len(f.leaves) > 0 }

// has reports whether a node has columns.
func (f *Front) has(node int) bool { return len(f.spans[node]) > 0 }

// From sets the next step to be prepared. Others may still read the blocks of two steps
// before: epochs ascend, and steps that are only looked at are those of epoch 0.
func (f *Front) From(epoch uint32, step int) { f.turn.from(epoch, step) }

// Rest returns all weights but the front's. Each node has gradients of its own for
// these, to be added up over all.
func (f *Front) Rest() (all []exchange.Range) {
	at := 0
	for _, p := range f.model.Params() {
		if slices.ContainsFunc(f.terms, func(t term) bool { return t.Param.Offset == p.Offset }) {
			continue
		}
		if n := len(all); n > 0 && at == p.Offset {
			all[n-1].Count += p.Rows * p.Cols
		} else {
			all = append(all, exchange.Range{First: p.Offset, Count: p.Rows * p.Cols})
		}
		at = p.Offset + p.Rows*p.Cols
	}
	return all
}

// of returns the param in a row of all.
func of(row tensor.Matrix, p *nn.Param) tensor.Matrix {
	return row.View(0, 1, p.Offset, p.Rows*p.Cols).Reshape(p.Rows, p.Cols)
}

// shaped returns the scratch matrix with any content.
func (f *Front) shaped(rows, cols int) tensor.Matrix {
	return f.flat.View(0, 1, 0, rows*cols).Reshape(rows, cols)
}

// wait waits for the data of other nodes.
func (f *Front) wait(t *takes) error {
	start := time.Now()
	err := t.wait()
	f.waited += time.Since(start)
	return err
}

// Waited returns how long steps have waited for other nodes since the last call.
func (f *Front) Waited() time.Duration {
	d := f.waited
	f.waited = 0
	return d
}

// offer offers bytes to others until Done, which removes them by tags.
func (f *Front) offer(tags *[]exchange.Tag, t exchange.Tag, b []byte) {
	if f.nodes == 1 {
		return
	}
	f.exchange.Offer(t, b)
	*tags = append(*tags, t)
}
