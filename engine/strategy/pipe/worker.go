package pipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/blocks"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/ending"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/shelf"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/traffic"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A Worker trains on one node: some ways of one stage or, where there are more nodes than
// seats, nothing but its part in the ends of epochs. One goroutine uses it.
type Worker struct {
	*Task
	layers
	portion
	buffers
	progress
	net traffic.Traffic

	halo     *halo
	boundary [2]*boundary // forward and backward
	sums     summer
	settling settling
	digest   *traffic.Digest // nil where there is nothing to compute

	trace func(event, int) // in tests
	apart bool             // in tests: rows are received when they are needed, and not ahead
}

// layers are the layers of this node's stage.
type layers struct {
	stage      int
	parted     bool           // some node trains only some of the weights
	infos      []nn.StageInfo // the whole model
	first, end int            // of the model's stages
	from, to   int            // of the columns of all weights
}

// last reports whether the stage computes the answers.
func (l *layers) last() bool { return l.end == len(l.infos) }

// sees reports whether a stage of the model reads rows of other vertices which earlier
// stages computed.
func (l *layers) sees(s int) bool { return s > 0 && l.infos[s].Hops > 0 }

// fleeting reports whether the rows that a layer reads are of no use once the next ones are
// computed, nor the gradients at them once those of the layer before are: so layers take turns
// in the memory of two, forward and backward. It is not so where earlier rows are read again,
// as histories, in place of those that were not sent, or to compute a pass again.
func (w *Worker) fleeting() bool {
	return !w.refreshes() && !w.Recompute && w.Halo.Policy != Skip
}

// productsAt is the model's stage that reads products.
const productsAt = 1

// multiplies reports whether an epoch of this worker begins with the products of all its
// vertices, where a first layer is split and chunks go through it one after the other. So each
// is multiplied once, its product is of this epoch whoever reads it, and nobody keeps features
// of sources. The gradients at products are whole when all positions have gone back: then all
// go back through the product. Stages are cut before layers, so this one has both stages of the
// first.
func (w *Worker) multiplies() bool {
	return w.first == 0 && w.refreshes() && w.Model.IsSplit()
}

// begins returns the first of the model's stages through which positions go one by one.
func (w *Worker) begins() int {
	if w.multiplies() {
		return productsAt
	}
	return w.first
}

// gathers reports whether a stage reads products of all vertices, and gathers the gradients at
// them until all positions have gone back.
func (w *Worker) gathers(s int) bool { return s == productsAt && w.multiplies() }

// meets reports whether ways exchange the rows of a position before a stage.
func (w *Worker) meets(s int) bool { return w.sees(s) && !w.gathers(s) }

// columns returns the most columns of rows that ways send each other.
func (l *layers) columns() (most int) {
	for s := l.first; s < l.end; s++ {
		if l.sees(s) {
			most = max(most, l.infos[s].In)
		}
	}
	return most
}

// portion is this node's part of the graph.
type portion struct {
	ways    []*way
	grains  []*grain
	trunks  []*grain
	leaves  []*leaf   // by their shards
	at      [][]*leaf // by position
	mirrors *arrange.Mirrors
	blocks  *shelf.Shelf // of grains and trunks
	past    *shelf.Rows  // the histories of all levels; nil: there are none
	entries float64      // of a row of sparse features, set by Bytes
}

// most returns the largest number of grains and trunks at one position.
func (p *portion) most() (most int) {
	for position := range p.at {
		n := 0
		for _, way := range p.ways {
			n += len(way.at[position]) + len(way.trunks[position])
		}
		most = max(most, n)
	}
	return most
}

// slots returns the largest number of leaves at one position.
func (p *portion) slots() (most int) {
	for _, leaves := range p.at {
		most = max(most, len(leaves))
	}
	return most
}

// buffers are the memory of a worker.
type buffers struct {
	kept   tensor.Arena   // lives as long as the worker
	early  tensor.Arena   // of weights of earlier epochs
	ground tensor.Arena   // of all passes
	arenas []tensor.Arena // of each
	passes []*nn.Pass
	rooms  []tensor.Matrix // of gradients, one for each leaf of a position
	spare  tensor.Arena    // for copies between the device and other nodes
	going  tensor.Arena    // of the gradients with which a position goes back
	sent   tensor.Arena    // of what comes and goes
	part   [1]tensor.Part  // what is gathered from
}

// progress is the state of training.
type progress struct {
	epoch  int   // from 0
	order  []int // of positions
	turns  []int // of each position: its place in the order, where gradients are kept
	loss   float64
	shared ending.Shared

	period  tensor.Matrix // the weights that histories are of, where there are histories
	history bool          // one has been made
	went    bool          // an epoch is done
}

// An event is what tests trace.
type event uint8

const (
	forwardDone event = iota
	backwardDone
)

// New returns a worker that knows its work, and must be closed if there is one. Once it has met
// the others, it can say what memory it needs.
func New(ctx context.Context, t Task) (*Worker, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	w := &Worker{Task: &t, layers: layers{infos: t.Model.Stages()}, net: traffic.Traffic{Exchange: t.Exchange, Work: t.Work}}
	stage, ways := t.Seats.Of(t.Work.Self)
	w.stage, w.parted = stage, parted(t.Seats, w.net.Nodes())
	w.mirrors = arrange.NewMirrors(t.Shape)
	if w.parted {
		w.shared = ending.Share(t.Model, t.Shape, t.Seats, t.Cuts, t.Work, t.Device.Type())
	}
	if ways == nil {
		return w, nil
	}
	w.first, w.end = t.Cuts[stage], t.Cuts[stage+1]
	w.from, w.to = arrange.Columns(t.Model, w.first, w.end)
	return w, w.assign(ctx, ways)
}

// meetAt is where nodes exchange mirrors: after all trials, and before anything else of the
// job. In a trial that is before its first epoch.
const meetAt = 1 << 19

// Meet exchanges with the other nodes which rows ways read of each other: all nodes call it
// between New and Open.
func (w *Worker) Meet(ctx context.Context, tally *peer.Tally) error {
	if w.Work.Alone() {
		return nil
	}
	tag := exchange.Tag{Step: meetAt}
	if w.net.Trial > 0 {
		tag.Step = w.net.Trial
	}
	return w.mirrors.Meet(ctx, w.Exchange, w.Work, w.Seats, tag, tally)
}

// Waited returns how long epochs have waited for other nodes since its last call.
func (w *Worker) Waited() time.Duration { return w.net.Waited() }

// Open takes the memory. It sends nothing. Close must be called whatever it returns.
func (w *Worker) Open() (err error) {
	room := 0
	if w.ways != nil {
		room = loadOf(w).spare()
	}
	if w.spare, err = w.Device.NewArena(room); err != nil {
		return err
	}
	if w.ways != nil {
		if err := allocate(w); err != nil {
			return err
		}
		if w.sent, err = w.Device.NewArena(loadOf(w).sent()); err != nil {
			return err
		}
		w.halo = newHalo(w, w.mirrors)
		for d := range w.boundary {
			w.boundary[d] = newBoundary(w, d)
		}
	}
	if w.refreshes() {
		if err := w.newPeriod(); err != nil {
			return err
		}
	}
	w.sums = openSums(w)
	if w.ways != nil {
		w.digest = openDigest(w)
	}
	return nil
}

// assign gives the worker some ways of a stage.
func (w *Worker) assign(ctx context.Context, ways []int) (err error) {
	t := w.Task
	s := blocks.New(t.Topology, t.Model.Form(), t.Blocks)
	w.blocks = s.Done
	defer func() { err = errors.Join(err, s.Stop()) }()
	for _, number := range ways {
		way, err := newWay(ctx, number, t, w.mirrors, s, w.first == 0 && w.infos[0].Hops > 0, w.last())
		if err != nil {
			return err
		}
		w.ways = append(w.ways, way)
		w.grains = append(w.grains, way.grains...)
		w.trunks = append(w.trunks, slices.Concat(way.trunks...)...)
	}
	if err := s.End(); err != nil {
		return err
	}
	for i, g := range w.trunks {
		g.get(w.blocks)
		g.number = len(w.grains) + i
	}
	for i, g := range w.grains {
		g.get(w.blocks)
		g.number = i
	}
	w.addLeaves()
	return w.makePast()
}

// addLeaves gives each grain its leaf.
func (w *Worker) addLeaves() {
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

// Reads returns the vertices whose features each grain reads, and the number of places for
// inputs: 0 on nodes that do not have the first stage. briefly reports that no grain needs its
// features while another one reads.
func (w *Worker) Reads() (vertices [][]uint32, places int, briefly bool) {
	if w.ways == nil || w.first > 0 {
		return nil, 0, false
	}
	vertices = make([][]uint32, len(w.grains)+len(w.trunks))
	for _, g := range slices.Concat(w.grains, w.trunks) {
		switch {
		case g.trunk != nil: // reads for it
		case w.infos[0].Hops > 0:
			vertices[g.number] = g.block.Vertices
		default:
			vertices[g.number] = g.vertices
		}
	}
	return vertices, w.places(), w.multiplies()
}

// places counts the passes that live at the same time, and so the inputs.
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

// room returns memory for what comes from other nodes or goes to them.
func (w *Worker) room(bytes int) []byte {
	return plain.Of(w.sent.Alloc(w.Device.Type(), 1, bytes/w.Device.Type().Bytes()))
}

// Close frees the memory, which the last answer does that still reads what was offered from
// it. It must be called if New has returned a worker, even with an error.
func (w *Worker) Close() {
	w.net.Abandon(nil)
	w.net.Retire(func() {
		_, _ = w.blocks.Close(), w.past.Close()                                                   // nobody needs them any more
		for _, a := range append(w.arenas, w.kept, w.early, w.going, w.sent, w.spare, w.ground) { // some may be nil
			if a != nil {
				a.Close()
			}
		}
	})
}

// Epoch trains one epoch, from 1. It sets this node's own columns of the gradients, or all where
// nodes share them, to those of the whole graph: the same bits on all nodes that have them. It returns the sum of the
// losses, and the words of all nodes, to which this one adds mine. key is that of dropout.
func (w *Worker) Epoch(ctx context.Context, epoch int, key keyed.Key, mine ending.Word, tally *peer.Tally) (loss float64, all ending.Word, err error) {
	ctx = w.net.Within(ctx)
	defer func() {
		if err != nil {
			w.net.Abandon(err)
		}
	}()
	w.epoch, w.net.Tally, w.loss = epoch-1, tally, 0
	w.order = arrange.Order(w.order, w.Seed, w.epoch, w.Shape.Positions(), w.Shuffle)
	for d := 0; w.ways != nil && d < len(w.boundary); d++ {
		w.boundary[d].forget()
	}
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
	}
	if w.sums != nil {
		if err := w.sums.addUp(); err != nil {
			return 0, 0, fmt.Errorf("add up the gradients: %w", err)
		}
	}
	return w.conclude(ctx, mine)
}

// through computes all positions forward, then all backward.
func (w *Worker) through(ctx context.Context) error {
	w.begin()
	if err := w.multiply(); err != nil {
		return err
	}
	w.boundary[forwards].begin()
	for place := range w.order {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.forward(place); err != nil {
			return err
		}
	}
	if err := w.endPeriod(); err != nil {
		return err
	}
	w.turn()
	w.boundary[backwards].begin()
	for place := range slices.Backward(w.order) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.backward(place); err != nil {
			return err
		}
	}
	if err := w.multiplyBack(); err != nil {
		return err
	}
	w.went = true
	return nil
}

// begin prepares rows for an epoch.
func (w *Worker) begin() {
	for _, way := range w.ways {
		for _, l := range way.levels {
			if l != nil && l.past {
				plain.Write(w.Device, l.rows, w.recalls(l, 0, l.rows.Rows))
			}
		}
	}
	w.halo.begin()
}

// turn prepares gradients, when all positions have gone forward.
func (w *Worker) turn() {
	for _, way := range w.ways {
		for _, l := range way.levels {
			if l != nil && !w.fleeting() {
				w.Device.Zero(l.back)
			}
		}
	}
	w.standIn()
}

// Bytes returns the memory of a worker that is open and has trained, except for features.
// entries is the number of entries of a row of sparse features; 0: they are dense.
func (w *Worker) Bytes(entries float64) uint64 {
	w.entries = entries
	return loadOf(w).bytes()
}
