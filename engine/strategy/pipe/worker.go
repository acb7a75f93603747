package pipe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Worker is one node at work: some ways of one stage, or nothing but adding up, where
// there are more nodes than seats. One goroutine uses it.
type Worker struct {
	*Task
	stage      int
	first, end int // of the model's stages
	from, to   int // of the columns of all weights, that are those stages'
	parted     bool
	infos      []nn.StageInfo
	ways       []*way
	grains     []*grain
	trunks     []*grain
	leaves     []*leaf   // by their shards
	at         [][]*leaf // of each position
	seen       *Mirrors
	entries    float64 // of a row of sparse features, as Bytes was told

	kept   tensor.Arena   // of what lives as long as the worker
	early  tensor.Arena   // of the weights of before
	arenas []tensor.Arena // of passes
	passes []*nn.Pass
	rooms  []tensor.Matrix // of gradients: of each leaf of a position
	spare  tensor.Arena    // of what is between the device and other nodes
	part   [1]tensor.Part  // of what is gathered

	order    []int
	turns    []int // of each position: its place in the order, where gradients are kept
	halo     *halo
	boundary [2]*boundary // forward and backward; nil at the ends
	sums     summer
	settles  map[int]*fetch // by node
	gives    [][]byte       // of each row that settles: what others take
	digest   *digest        // nil where there is nothing to compute

	period  tensor.Matrix // the weights that histories are of, where there are histories
	history bool          // there is one of them
	went    bool          // an epoch is done

	// Of the epoch under way.
	epoch int // from 0
	tally *strategy.Tally
	loss  float64
	said  [said]byte // the loss and a word, as others are told

	// What fetches wait by: under ends with parent, and when cancel is called.
	parent, under context.Context
	cancel        context.CancelCauseFunc
	fetches       []*fetch // all that there are

	waited time.Duration // for other nodes, since it was asked last

	trace func(event, int) // in tests
	apart bool             // in tests: what others send is received when it is wanted, and not ahead
}

// An event is what a test is told of.
type event uint8

const (
	forwardDone event = iota
	backwardDone
)

// New makes a worker that knows what it is to do, and can say what memory that takes.
func New(ctx context.Context, t Task) (*Worker, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	w := &Worker{Task: &t, infos: t.Model.Stages()}
	stage, ways := t.Seats.Of(t.Work.Self)
	w.stage, w.parted = stage, parted(t.Seats, w.nodes())
	if ways == nil {
		return w, nil
	}
	w.first, w.end = t.Cuts[stage], t.Cuts[stage+1]
	w.from, w.to = columnsOf(t.Model, w.first, w.end)
	return w, w.sit(ctx, ways)
}

// Open takes the memory. Nothing is sent before Epoch. Whatever it returns, Close is to
// be called.
func (w *Worker) Open() (err error) {
	if w.spare, err = w.Device.NewArena(0); err != nil {
		return err
	}
	if w.ways != nil {
		if err := w.allocate(); err != nil {
			return err
		}
		w.halo = newHalo(w, w.seen)
		for d := range w.boundary {
			w.boundary[d] = newBoundary(w, d)
		}
	}
	if w.refreshes() {
		if err := w.newPeriod(); err != nil {
			return err
		}
	}
	w.newSums()
	if w.ways != nil {
		w.digest = newDigest(w)
	}
	return nil
}

// sit gives the worker some ways of a stage.
func (w *Worker) sit(ctx context.Context, ways []int) error {
	t := w.Task
	m := NewMirrors(t.Shape, t.Topology)
	s := sample.New(t.Topology, sample.Options{Fanouts: []int{0}, Form: t.Model.Form()})
	for _, number := range ways {
		way, err := newWay(ctx, number, t, m, s, w.first == 0 && w.infos[0].Hops > 0)
		if err != nil {
			return err
		}
		w.ways = append(w.ways, way)
		w.grains = append(w.grains, way.grains...)
		w.trunks = append(w.trunks, slices.Concat(way.trunks...)...)
	}
	for i, g := range w.trunks {
		g.number = len(w.grains) + i
	}
	for i, g := range w.grains {
		g.number = i
		if w.last() {
			g.label(t)
		}
	}
	w.seen = m
	w.grow()
	return nil
}

// grow gives each grain its leaf.
func (w *Worker) grow() {
	for p := range w.Shape.Positions() {
		var at []*leaf
		for _, way := range w.ways {
			for _, g := range way.at[p] {
				i := slices.IndexFunc(at, func(l *leaf) bool { return l.shard == g.shard })
				if i < 0 {
					i, at = len(at), append(at, &leaf{shard: g.shard, slot: len(at)})
				}
				g.leaf = at[i]
			}
		}
		w.at, w.leaves = append(w.at, at), append(w.leaves, at...)
	}
	slices.SortFunc(w.leaves, func(a, b *leaf) int { return a.shard - b.shard })
}

// Reads lists, of each grain, the vertices whose features it reads, and says how many
// places there are for inputs: none, where this node does not have the first stage.
func (w *Worker) Reads() (vertices [][]uint32, places int) {
	if w.ways == nil || w.first > 0 {
		return nil, 0
	}
	vertices = make([][]uint32, len(w.grains)+len(w.trunks))
	for _, g := range slices.Concat(w.grains, w.trunks) {
		switch {
		case g.trunk != nil: // which reads for it
		case w.infos[0].Hops > 0:
			vertices[g.number] = g.block.Vertices
		default:
			vertices[g.number] = g.vertices
		}
	}
	return vertices, w.places()
}

// places counts the passes that are under way at once, and so the inputs.
func (w *Worker) places() int {
	if w.Recompute {
		return w.most()
	}
	return len(w.grains) + len(w.trunks)
}

// Edges counts those along which this node aggregates in an epoch, in one direction.
func (w *Worker) Edges() (n int) {
	for _, g := range w.grains {
		n += g.block.Entries()
	}
	layers := 0
	for s := w.first; s < w.end; s++ {
		layers += w.infos[s].Hops
	}
	return n * layers
}

// last says whether the stage answers.
func (w *Worker) last() bool { return w.end == len(w.infos) }

// sees says whether a stage of the model sees rows of other grains, which others made.
func (w *Worker) sees(s int) bool { return s > 0 && w.infos[s].Hops > 0 }

// allocate makes the rows of all levels, and passes.
func (w *Worker) allocate() (err error) {
	d := w.Device
	if w.kept, err = d.NewArena(w.keeps()); err != nil {
		return err
	}
	zeros := func(rows, cols int) tensor.Matrix {
		m := w.kept.Alloc(d.Type(), rows, cols)
		d.Zero(m)
		return m
	}
	for _, way := range w.ways {
		for s := w.first; s < w.end; s++ {
			var l *level
			if cols := w.infos[s].In; w.sees(s) {
				l = &level{rows: zeros(way.all(), cols), back: zeros(way.all(), cols)}
				if w.Shape.Positions() > 1 {
					l.history = zeros(way.all(), cols)
				}
			}
			way.levels = append(way.levels, l)
		}
	}
	for _, g := range w.grains {
		if w.first > 0 {
			g.input = zeros(len(g.vertices), w.infos[w.first].In)
			if w.infos[w.first].CarryIn > 0 {
				g.carried = zeros(len(g.vertices), w.infos[w.first].CarryIn)
			}
		}
	}
	w.keepLate()
	return w.allocatePasses()
}

// most is how many grains and trunks are at one position at most.
func (w *Worker) most() (most int) {
	for p := range w.Shape.Positions() {
		n := 0
		for _, way := range w.ways {
			n += len(way.at[p]) + len(way.trunks[p])
		}
		most = max(most, n)
	}
	return most
}

// slots is how many leaves are at one position at most.
func (w *Worker) slots() (most int) {
	for _, leaves := range w.at {
		most = max(most, len(leaves))
	}
	return most
}

// allocatePasses makes a pass for each grain or, where they are made again, for each that
// is at one position, and room for the gradients of a position's leaves.
func (w *Worker) allocatePasses() error {
	for range w.slots() {
		w.rooms = append(w.rooms, w.kept.Alloc(w.Device.Type(), 1, w.Model.Size()))
	}
	for _, bytes := range w.load().places() {
		a, err := w.Device.NewArena(bytes)
		if err != nil {
			return err
		}
		p := w.Model.NewPass(w.Device, a)
		p.Weights, p.Train = w.Weights, true
		w.arenas, w.passes = append(w.arenas, a), append(w.passes, p)
	}
	return nil
}

// Close gives its memory back.
func (w *Worker) Close() {
	w.fail(nil)
	for _, a := range append(w.arenas, w.kept, w.early, w.spare) { // those that there are
		if a != nil {
			a.Close()
		}
	}
}

// Epoch trains one, from 1 on: it sets this node's own columns of the gradients to those of
// the whole graph, the same bits on all nodes that have them, and returns the sum of the
// losses and what any node says, to which this one adds a word. key is that of dropout.
func (w *Worker) Epoch(ctx context.Context, epoch int, key keyed.Key, mine Word, tally *strategy.Tally) (loss float64, all Word, err error) {
	ctx = w.within(ctx)
	defer func() {
		if err != nil {
			w.abandon(err)
		}
	}()
	w.epoch, w.tally, w.loss = epoch-1, tally, 0
	w.order = Order(w.order, w.Seed, w.epoch, w.Shape.Positions(), w.Shuffle)
	if err := w.beginPeriod(); err != nil {
		return 0, 0, fmt.Errorf("make a history of all vertices: %w", err)
	}
	if w.ways != nil {
		for _, p := range w.passes {
			p.Key = key
		}
		if err := w.through(ctx); err != nil {
			return 0, 0, fmt.Errorf("stage %d of %d: %w", w.stage+1, w.Seats.Stages, err)
		}
		w.endPeriod()
	}
	if err := w.addUp(); err != nil {
		return 0, 0, err
	}
	return w.conclude(ctx, mine)
}

// Waited is how long epochs have waited for other nodes since it was asked last. What
// comes while something is computed was not waited for.
func (w *Worker) Waited() time.Duration {
	d := w.waited
	w.waited = 0
	return d
}

// since counts what has gone by as waited for other nodes.
func (w *Worker) since(start time.Time) { w.waited += time.Since(start) }

// through has all positions go forward, and all go backward.
func (w *Worker) through(ctx context.Context) error {
	w.begin()
	w.boundary[forwards].begin()
	for place := range w.order {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.forward(place); err != nil {
			return err
		}
	}
	w.boundary[backwards].begin()
	for place := range slices.Backward(w.order) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.backward(place); err != nil {
			return err
		}
	}
	w.went = true
	return nil
}

// begin sets what an epoch begins with.
func (w *Worker) begin() {
	d := w.Device
	for _, way := range w.ways {
		for _, l := range way.levels {
			if l == nil {
				continue
			}
			d.Zero(l.back)
			if !l.history.None() {
				d.Combine(l.rows, 1, l.history, 0, tensor.Matrix{})
			}
		}
	}
	w.standIn()
	w.halo.begin()
}
