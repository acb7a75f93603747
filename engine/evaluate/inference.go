package evaluate

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// An Inference runs models over all vertices with all their neighbours, stage by stage.
// Where memory allows, a stage is one part over all of them; else it is done in parts, and
// what lies between its steps is in tables. The results are the same bits.
//
// Several models take turns: what their parts read is there once for all of them.
//
// Where several nodes share the graph, each does so for the vertices of its shards, and
// before each layer they bring each other the rows that its edges come from.
type Inference struct {
	data    *dataset.Graph
	halo    *halo
	own     *extent // of the halo
	device  tensor.Device
	now     *View   // the model whose turn it is
	views   []*View // of all models
	weaver  *weaver
	ranks   *ranks // of an evaluator; nil: nothing is ranked
	planned plan   // what runs
	scratch scratch
	whole   whole
	limits
	lent
	distant
}

// limits are what a run keeps to.
type limits struct {
	memory uint64 // that it may take
	folder folder // of files for what memory is too small for
	tick   func() // called now and then; may be nil
	once   bool   // it is the only run
}

// lent is the arena that parts, or the first lane, have of the caller.
type lent struct {
	work    tensor.Arena
	reused  uint64       // bytes of it
	foreign bool         // the device has memory of its own
	beside  tensor.Arena // another where work is too small; nil: it is not
	parts   lane         // of parts
}

// Options are what an inference runs with.
type Options struct {
	Memory  uint64 // that it may take
	Dir     string // of files for what memory is too small for
	Threads int
	Tick    func() // called now and then; may be nil
}

// A scratch is what the parts of a stage read, one after the other.
type scratch struct {
	sampler *sample.Sampler // of parts whose sources are brought together
	batch   sample.Batch
	sparse  features.Rows
	ids     []uint32
	rows    []uint32 // of a block's sources, or places of features
	far     gather.Rows
	kept    *table // dense features of the halo, of parts; nil: they are not here
}

// A View is what inference has of one model.
type View struct {
	model     *nn.Model
	weights   tensor.Matrix
	stages    []nn.StageInfo
	divisions []nn.Division // of the stages
	divided   []bool        // whether they have one
	costOf    []stageCost   // of the stages
	like      []int         // of each stage: the first that takes as much memory
	lanes     [3]lane       // where it has used them before
	parts     lane
}

// NewInference returns an inference over a graph for the models that are added to it. Until
// it is opened it can only forecast its memory.
func NewInference(d *dataset.Graph, nodes Nodes) *Inference {
	h := newHalo(nodes, d)
	return &Inference{data: d, halo: h, own: &h.own, limits: limits{folder: folder{free: budget.Disk}}}
}

// Add adds a model, whose turn it is from then on. All are added before Open, and need
// blocks of the same form. The weights are not read before Run.
func (i *Inference) Add(model *nn.Model, weights tensor.Matrix) *View {
	v := &View{model: model, weights: weights, stages: model.Stages()}
	for s := range v.stages {
		d, ok := model.Divide(s, i.data.Features.Sparse())
		v.divisions, v.divided = append(v.divisions, d), append(v.divided, ok)
		v.like = append(v.like, model.Like(s))
		if like := v.like[s]; like < s {
			v.costOf = append(v.costOf, v.costOf[like])
		} else {
			v.costOf = append(v.costOf, costOf(model, s, i.data.Features.Sparse(), i.data.Entries))
		}
	}
	i.views = append(i.views, v)
	if i.weaver == nil {
		i.weaver = &weaver{halo: i.halo, form: model.Form()}
	}
	i.turn(v)
	return v
}

// Open makes it ready to run on a device. Parts are computed in the arena work, which
// remains the caller's and is overwritten, or in another where it is too small.
func (i *Inference) Open(device tensor.Device, work tensor.Arena, o Options) error {
	i.device, i.work, i.memory, i.folder.dir, i.tick = device, work, o.Memory, o.Dir, o.Tick
	_, i.foreign = device.(tensor.Foreign)
	i.reused = uint64(work.Bytes())
	if err := i.folder.fits(i.Disk(i.memory)); err != nil {
		return err
	}
	i.halo.list()
	i.weaver.open(i.data.Topology)
	return i.open(device, o.Threads)
}

// Limit changes how much memory it may take.
func (i *Inference) Limit(memory uint64) { i.memory = memory }

// turn has a model run next.
func (i *Inference) turn(v *View) {
	i.now = v
	i.halo.turn(v.stages)
}

// over returns a pass in the memory of an arena.
func (v *View) over(device tensor.Device, a tensor.Arena) *nn.Pass {
	p := v.model.NewPass(device, a)
	p.Weights = v.weights
	return p
}

// room returns an arena of so many bytes: the one that is lent, if it is large enough.
func (i *Inference) room(bytes uint64) (a tensor.Arena, err error) {
	if i.foreign || uint64(i.work.Bytes()) >= bytes {
		return i.work, nil
	}
	if i.beside != nil && uint64(i.beside.Bytes()) < bytes {
		i.beside.Close()
		i.beside = nil
	}
	if i.beside == nil {
		if a, err = i.device.NewArena(int(bytes)); err != nil {
			return nil, err
		}
		i.beside = a
	}
	return i.beside, nil
}

// begin has parts run in an arena that is large enough.
func (i *Inference) begin(p plan) error {
	a, err := i.room(p.arena)
	if err != nil {
		return err
	}
	if i.now.parts.arena != a {
		i.now.parts = lane{a, i.now.over(i.device, a)}
	}
	i.parts = i.now.parts
	return nil
}

// sources counts the vertices whose rows a layer may see.
func (i *Inference) sources() int { return i.halo.total() }

// exchanged reports whether nodes exchange the rows after a stage: a layer follows, which
// reads those of neighbours.
func (i *Inference) exchanged(s, stages int) bool {
	return !i.halo.nodes.alone() && s+1 < stages && i.now.stages[s+1].Hops > 0
}

// admit takes up how many of the rows here each node needs, if that is much more than was planned:
// forecasts are a sixteenth off at times, and a little more is no reason to run in parts. It
// returns an error if no way fits in the memory that it may take, before anything is allocated.
// Other nodes need not know how this one plans.
func (i *Inference) admit(counts []int) error {
	may, planned, needed := max(i.memory, i.Takes(i.memory)), i.givenBytes(), 0
	for _, rows := range counts {
		needed += rows
	}
	if i.halo.needed = needed; i.givenBytes() <= planned+may/16 {
		i.halo.needed = 0
		return nil
	}
	needs := i.Takes(i.memory)
	if needs <= may || needs-may <= may/16 {
		return nil
	}
	i.halo.needed = 0
	return &budget.Short{
		Cause: fmt.Sprintf("other nodes need %d rows of the %d of this node for the evaluation, which takes %s of memory with them, and may take %s",
			needed, i.own.rows, budget.Format(needs), budget.Format(may)),
		Needs: needs, Has: may, Advice: []budget.Advice{budget.AllowMore},
	}
}

// givenBytes is what the rows take that others need, with their lists, where all are in memory.
func (i *Inference) givenBytes() uint64 {
	return i.largest(func(stages int) uint64 {
		outs, _, _ := i.exchanges(stages)
		return i.lists() + outs
	})
}

// next returns an error if the run is to end.
func (i *Inference) next(ctx context.Context) error {
	if i.tick != nil {
		i.tick()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Run runs the first stages of the model whose turn it is, and yields the rows of all
// vertices that this node computes, in order, part by part. Parts begin and end where chunks
// do.
func (i *Inference) Run(ctx context.Context, stages int, yield func(first int, y tensor.Matrix) error) error {
	i.planned = i.plan(stages)
	return i.run(ctx, stages, yield)
}

// run is Run as it is planned.
func (i *Inference) run(ctx context.Context, stages int, yield func(first int, y tensor.Matrix) error) error {
	if err := i.folder.fits(i.planned.disk); err != nil {
		return err
	}
	if i.planned.whole {
		return i.runWhole(ctx, stages, yield)
	}
	return i.runParts(ctx, stages, yield)
}

// answer is what is yielded of the last stage that is run: the rows or, before a head that
// reads all layers, what was collected beside them.
func (i *Inference) answer(stages int, y, carry tensor.Matrix) tensor.Matrix {
	if stages < len(i.now.stages) && i.now.stages[stages].Hops == 0 && i.now.stages[stages].CarryIn > 0 {
		return carry
	}
	return y
}

// between is the rows of all vertices after a stage, those of the halo behind them, and
// what travels beside them.
type between struct{ x, carry *table }

func (b between) close() error { return errors.Join(b.x.close(), b.carry.close()) }

func (i *Inference) runParts(ctx context.Context, stages int, yield func(first int, y tensor.Matrix) error) (err error) {
	if i.whole.ready {
		i.forget() // there was more memory before
	}
	if err := i.begin(i.planned); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.weaver.drop()) }()
	var before between
	for s, stage := range i.now.stages[:stages] {
		if before, err = i.runStage(ctx, s, stages, before, yield); err != nil {
			return fmt.Errorf("run %s over all vertices: %w", stage.Name, err)
		}
	}
	return nil
}

// runStage runs one stage over all vertices. It returns their rows, with those of the halo
// where a layer follows, or yields those of the last stage. It closes what it reads.
func (i *Inference) runStage(ctx context.Context, s, stages int, before between, yield func(first int, y tensor.Matrix) error) (after between, err error) {
	// A shard that can't be read any more is a panic, which somebody catches: no file stays mapped.
	whole := false
	defer func() {
		if err = errors.Join(err, before.close()); !whole {
			err = errors.Join(err, after.close())
		}
	}()
	err = i.compute(ctx, s, stages, &before, &after, yield)
	err = errors.Join(err, before.close()) // the halo's rows need its room
	if err == nil && i.exchanged(s, stages) {
		err = i.halo.bring(i, s, after.x.x.RowRange(0, i.own.rows), after.x)
	}
	whole = err == nil
	return after, err
}

// compute is runStage without the halo's rows.
func (i *Inference) compute(ctx context.Context, s, stages int, before, after *between, yield func(first int, y tensor.Matrix) error) (err error) {
	var carried *table
	defer func() { err = errors.Join(err, carried.close()) }()
	stage, d := &i.now.stages[s], i.now.divisions[s]
	if stage.Hops > 0 && d.Carried > 0 && !i.planned.brought {
		if carried, err = i.table(i.sources(), d.Carried); err != nil {
			return err
		}
		if err := i.carry(ctx, s, before.x, carried); err != nil {
			return err
		}
		if !d.Own {
			if err := before.x.close(); err != nil {
				return err
			}
		}
	}
	if s < stages-1 {
		if after.x, err = i.table(i.seenBy(s+1), stage.Out); err != nil {
			return err
		}
		if after.carry, err = i.table(i.own.rows, stage.CarryOut); err != nil {
			return err
		}
	}
	for first := 0; first < i.own.rows; {
		if err := i.next(ctx); err != nil {
			return err
		}
		rows := i.partRows(s, first)
		i.parts.arena.Reset()
		y, beside, err := i.runPart(ctx, s, first, rows, before, carried)
		if err == nil && after.x == nil {
			err = yield(first, i.answer(s+1, y, beside))
		} else if err == nil {
			err = errors.Join(after.x.write(first, y), after.carry.write(first, beside))
		}
		if err != nil {
			return err
		}
		first += rows
	}
	return nil
}

// table makes a table as it is planned.
func (i *Inference) table(rows, cols int) (*table, error) {
	return newTable(i.device, rows, cols, i.planned.inFile, i.folder.dir)
}

// partRows returns how many rows from first on are a part of a stage.
func (i *Inference) partRows(s, first int) int {
	if i.planned.brought {
		return i.partBrought(s, first)
	}
	return i.part(first, i.planned.rows)
}

// carry sets what edges carry of all sources in a stage: vertices here, then the halo's.
func (i *Inference) carry(ctx context.Context, s int, x, to *table) error {
	for first := 0; first < i.sources(); {
		if err := i.next(ctx); err != nil {
			return err
		}
		rows := min(i.planned.rows, i.sources()-first)
		if first < i.own.rows {
			rows = min(rows, i.own.rows-first)
		} else if s == 0 {
			rows = i.farRows(rows)
		}
		i.parts.arena.Reset()
		var in nn.Input
		var from tensor.Matrix
		var err error
		if s > 0 {
			from = x.x.RowRange(first, rows)
		} else if in, err = i.readRange(ctx, first, rows); err != nil {
			return err
		}
		if err := to.write(first, i.parts.pass.Carry(s, in, from)); err != nil {
			return err
		}
		first += rows
	}
	return nil
}

// runPart runs a stage for a part.
func (i *Inference) runPart(ctx context.Context, s, first, rows int, before *between, carried *table) (y, beside tensor.Matrix, err error) {
	stage, d := &i.now.stages[s], i.now.divisions[s]
	if stage.Hops > 0 && i.planned.brought {
		return i.runBrought(ctx, s, first, rows, before)
	}
	var in nn.Input
	var x tensor.Matrix
	switch {
	case stage.Hops > 0 && !d.Own:
		if s == 0 && i.data.Features.Sparse() {
			in.Sparse = &tensor.CSR{}
		}
	case s > 0:
		x = i.rangeOf(before.x, first, rows)
	default:
		if in, err = i.readRange(ctx, first, rows); err != nil {
			return y, beside, err
		}
	}
	beside = i.rangeOf(before.carry, first, rows)
	if stage.Hops == 0 {
		y, beside = i.parts.pass.Stage(s, nil, in, x, beside)
		return y, beside, nil
	}
	block, err := i.weaver.weave(first, rows, i.planned.entries, i.folder.dir)
	if err != nil {
		return y, beside, err
	}
	seen := carried
	if seen == nil {
		seen = before.x
	}
	y, beside = i.parts.pass.Sum(s, block, in, x, seen.x, beside)
	return y, beside, nil
}

// Embeddings returns how many of a model's stages make its embeddings, which are the rows
// that enter the last layer or, if the model has one, the head, and how many columns these
// have.
func Embeddings(stages []nn.StageInfo) (n, columns int, err error) {
	n = len(stages) - 1
	if n == 0 {
		return 0, 0, errors.New("the model has one layer only, which takes the features themselves: there are no embeddings before it")
	}
	if stages[n].Hops == 0 && stages[n].CarryIn > 0 {
		return n, stages[n].CarryIn, nil // see answer
	}
	return n, stages[n-1].Out, nil
}

// Predict runs the first stages, and yields the rows of all vertices in order, some at a
// time: they lie one after another, and are valid until yield returns. Nothing is yielded
// after fault, which is called once rows have been read, returns an error.
func (i *Inference) Predict(ctx context.Context, stages, columns int, fault func() error, yield func(first int, rows []float32) error) error {
	buffer := make([]float32, chunkRows*columns)
	return i.Run(ctx, stages, func(first int, y tensor.Matrix) error {
		for row := 0; row < y.Rows; row += chunkRows {
			some := y.RowRange(row, min(chunkRows, y.Rows-row))
			to := buffer[:some.Rows*columns]
			i.device.Read32(to, some)
			if err := fault(); err != nil {
				return err
			}
			if err := yield(first+row, to); err != nil {
				return err
			}
		}
		return nil
	})
}
