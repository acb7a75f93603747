package p3

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Batch is a step: this node's groups, and its part of the computation for those of
// all nodes. Its memory is reused. One goroutine at a time uses it.
type Batch struct {
	step   int
	called chan struct{} // by the turn

	self   int
	groups []*group // of all nodes, in their order
	order  []*group // the same, ordered by number
	used   int      // memory of groups in use
	memory []*group
	nodes  []run

	pass   *nn.Pass // with the key of dropout
	key    keyed.Key
	rows   tensor.Arena // of dense rows, and of values with dropout
	window mask
	tally  *peer.Tally

	flight  *flight // nil: it is not under way
	version int     // of the weights that it was sent with

	// Of own groups, while a step is computed.
	sums, errors []tensor.Matrix
}

// given is a group whose blocks are known here. They are valid until the batch is
// reused.
type given struct {
	grain int
	block *sample.Block
	alone sample.Block // of a model without hops: its roots
}

// A run is the groups of a node.
type run struct {
	given      []given // of this node, and of the others where none sends its own
	first, end int     // of groups
	rows       int     // of all their sums
	head       [headSize]byte
	message    []byte  // from the node
	limits     []limit // of the node's groups
}

// A group is a set of targets whose first layer is computed together, as this node sees
// it.
type group struct {
	number int // in the order of sums: the node, or the grain
	node   int
	rows   int // of its sum: a row for each target or each source
	row    int // of the first of them among those of its node
	block  *sample.Block
	theirs received

	dense  []tensor.Matrix // rows of each kind
	sparse []part          // of each leaf
}

// A part is the sparse rows of a group's sources in the columns of a leaf, counted from
// its first.
type part struct {
	sample.Block
	indptr  []int64
	indices []int32
	values  []float32
	dropped tensor.Matrix // stands in for values
}

// NewBatch returns a batch, which can be reused for any number of steps.
func (f *Front) NewBatch() *Batch {
	b := &Batch{called: make(chan struct{}, 1), self: f.self, nodes: make([]run, f.nodes), pass: f.model.NewPass(f.device, nil)}
	b.pass.Train = true
	return b
}

// Begin empties the batch.
func (b *Batch) Begin() {
	for i := range b.nodes {
		b.nodes[i].given, b.nodes[i].limits = b.nodes[i].given[:0], b.nodes[i].limits[:0]
	}
}

// Expect says that another node has a group with so many roots, in the order of computing, where
// nodes send their own blocks. What does not fit that is refused.
func (f *Front) Expect(b *Batch, node, grain, roots int) {
	r := &b.nodes[node]
	r.limits = append(r.limits, f.bound.limit(grain, roots))
}

// announced returns how many groups a node announces, and in how many bytes. It returns an error
// unless these are the groups that were dealt to the node, and no larger than their roots allow.
func (f *Front) announced(r *run) (groups, bytes int, err error) {
	if groups, bytes, err = f.bound.readHead(r.head[:]); err != nil {
		return 0, 0, err
	}
	most := uint64(0)
	for i := range r.limits {
		most += r.limits[i].bytes()
	}
	if groups != len(r.limits) || uint64(bytes) > most {
		return 0, 0, fmt.Errorf("it announces %d groups in %d bytes, but %d groups were dealt to it, with at most %d bytes", groups, bytes, len(r.limits), most)
	}
	return groups, bytes, nil
}

// Add adds a group of this node, with roots, in the order of computing. Where the model
// has no hops there are no blocks.
func (b *Batch) Add(grain int, roots []uint32, blocks []sample.Block) {
	b.AddOf(b.self, grain, roots, blocks)
}

// AddOf is Add for a group of any node, where nodes do not send their own. A node
// without columns needs no groups of others.
func (b *Batch) AddOf(node, grain int, roots []uint32, blocks []sample.Block) {
	r := &b.nodes[node]
	n := len(r.given)
	if n == cap(r.given) {
		r.given = append(r.given, given{})
	}
	r.given = r.given[:n+1]
	g := &r.given[n]
	g.grain, g.block = grain, nil
	if len(blocks) > 0 {
		g.block = &blocks[0]
		return
	}
	// A row is the target of itself only.
	indptr := append(g.alone.Indptr[:0], 0)
	for range roots {
		indptr = append(indptr, 0)
	}
	g.alone.CSR = tensor.CSR{Rows: len(roots), Cols: len(roots), Indptr: indptr}
	g.alone.Vertices = roots
}

// of returns the first block.
func (g *given) of() *sample.Block {
	if g.block == nil {
		return &g.alone
	}
	return g.block
}

// Sum is where Sums puts the first layer's sum of an own group, in the order of Add.
func (b *Batch) Sum(i int) tensor.Matrix { return b.sums[i] }

// Error is where the gradient of an own group's sum goes before Back.
func (b *Batch) Error(i int) tensor.Matrix { return b.errors[i] }

// gather lists the groups of all nodes, once their messages have come or their groups
// were added.
func (b *Batch) gather(f *Front) error {
	b.groups, b.used = b.groups[:0], 0
	for node := range b.nodes {
		r := &b.nodes[node]
		r.first, r.rows = len(b.groups), 0
		if node != f.self && !f.resample {
			if err := b.read(f, node); err != nil {
				return fmt.Errorf("what node %s tells of its blocks is wrong: %w", f.work.Nodes[node], err)
			}
		}
		for i := range r.given {
			b.add(f, node, r.given[i].grain).block = r.given[i].of()
		}
		r.end = len(b.groups)
		for _, g := range b.groups[r.first:] {
			g.rows, g.row = f.height(g.block), r.rows
			r.rows += g.rows
		}
	}
	b.order = append(b.order[:0], b.groups...)
	slices.SortStableFunc(b.order, func(x, y *group) int { return x.number - y.number })
	for i, g := range b.order {
		if g.number < 0 || g.number >= f.numbers {
			return fmt.Errorf("node %s computes a group that is number %d of a sum of %d", f.work.Nodes[g.node], g.number, f.numbers)
		}
		if i > 0 && g.number == b.order[i-1].number {
			return fmt.Errorf("node %s computes a group that is number %d of the sum, and so does node %s", f.work.Nodes[g.node], g.number, f.work.Nodes[b.order[i-1].node])
		}
	}
	return nil
}

func (b *Batch) add(f *Front, node, grain int) *group {
	if b.used == len(b.memory) {
		b.memory = append(b.memory, &group{})
	}
	g := b.memory[b.used]
	b.used++
	g.node, g.number = node, node
	if f.deterministic {
		g.number = grain
	}
	b.groups = append(b.groups, g)
	return g
}

// read parses the groups of another node.
func (b *Batch) read(f *Front, node int) error {
	r := &b.nodes[node]
	message := r.message
	groups, _, err := f.announced(r)
	if err != nil {
		return err
	}
	if !f.Computes() {
		return nil
	}
	for i := range groups {
		g := b.add(f, node, 0)
		grain, rest, err := g.theirs.read(message, f.bound)
		if err == nil {
			err = r.limits[i].check(&g.theirs.Block)
		}
		if err != nil {
			return err
		}
		if f.deterministic && grain != r.limits[i].grain {
			return fmt.Errorf("it computes grain %d in place of %d", grain, r.limits[i].grain)
		}
		message, g.block = rest, &g.theirs.Block
		if f.deterministic {
			g.number = grain
		}
	}
	if len(message) > 0 {
		return errBlock
	}
	return nil
}

// tag returns a tag of the step.
func (b *Batch) tag(epoch uint32, lane uint8) exchange.Tag {
	return exchange.Tag{Epoch: epoch, Step: uint32(b.step), Lane: lane}
}
