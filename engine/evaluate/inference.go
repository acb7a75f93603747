package evaluate

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// An Inference runs models over all vertices with all their neighbours, stage by stage.
// Where memory allows, a stage is one part over all of them; else it is done for ranges of
// vertices, each with the block of its own neighbours. The results are the same bits.
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
	work    tensor.Arena // of one part, reset for each
	now     *View        // the model whose turn it is
	views   []*View      // of all models
	sampler *sample.Sampler
	memory  uint64 // that it may take
	dir     string // of files for what memory is too small for
	tick    func() // called now and then; may be nil
	inFile  bool   // what lies between two stages does

	scratch scratch
	whole   whole
	distant
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
	batch  sample.Batch
	sparse features.Rows
	ids    []uint32
	rows   []uint32 // of a block's sources
	far    gather.Rows
}

// A View is what inference has of one model.
type View struct {
	model   *nn.Model
	weights tensor.Matrix
	pass    *nn.Pass
	stages  []nn.StageInfo
	costOf  []stageCost // of the stages
	lanes   [3]lane     // where it has used them before
}

// NewInference returns an inference over a graph for the models that are added to it. Until
// it is opened it can only forecast its memory.
func NewInference(d *dataset.Graph, nodes Nodes) *Inference {
	h := newHalo(nodes, d)
	return &Inference{data: d, halo: h, own: &h.own}
}

// Add adds a model, whose turn it is from then on. All are added before Open. The weights
// are not read before Run.
func (i *Inference) Add(model *nn.Model, weights tensor.Matrix) *View {
	v := &View{model: model, weights: weights, stages: model.Stages()}
	for s := range v.stages {
		v.costOf = append(v.costOf, costOf(model, s, i.data.Features.Sparse(), i.data.Entries))
	}
	i.views = append(i.views, v)
	i.turn(v)
	return v
}

// Open makes it ready to run on a device. Parts are computed in the arena work, which
// remains the caller's and is overwritten.
func (i *Inference) Open(device tensor.Device, work tensor.Arena, o Options) error {
	i.device, i.work, i.memory, i.dir, i.tick = device, work, o.Memory, o.Dir, o.Tick
	i.sampler = sample.New(i.data.Topology, sample.Options{Fanouts: []int{0}, Form: i.views[0].model.Form()})
	for _, v := range i.views {
		v.pass = v.over(device, work)
	}
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

// sources counts the vertices whose rows a layer may see.
func (i *Inference) sources() int { return i.own.rows + len(i.halo.ids) }

// exchanged reports whether nodes exchange the rows after a stage: a layer follows, which
// reads those of neighbours.
func (i *Inference) exchanged(s, stages int) bool {
	return !i.halo.nodes.alone() && s+1 < stages && i.now.stages[s+1].Hops > 0
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
	if i.own.rows > 0 && i.fits(stages) {
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
	i.inFile = i.tableBytes(stages) > i.memory/2
	var before between
	defer func() { err = errors.Join(err, before.close()) }()
	for s, stage := range i.now.stages[:stages] {
		var after between
		last := s == stages-1
		if !last {
			if after.x, err = newTable(i.device, i.sources(), stage.Out, i.inFile, i.dir); err != nil {
				return err
			}
			if after.carry, err = newTable(i.device, i.own.rows, stage.CarryOut, i.inFile, i.dir); err != nil {
				return errors.Join(err, after.close())
			}
		}
		err := i.runStage(ctx, s, before, after, yield)
		if err == nil && i.exchanged(s, stages) {
			err = i.halo.bring(i, s, after.x.x.RowRange(0, i.own.rows), after.x)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("run %s over all vertices: %w", stage.Name, err), after.close())
		}
		if err := before.close(); err != nil {
			return errors.Join(err, after.close())
		}
		before = after
	}
	return nil
}

// runStage runs one stage over all ranges of vertices: into after or, where that
// holds nothing, to yield.
func (i *Inference) runStage(ctx context.Context, s int, before, after between, yield func(first int, y tensor.Matrix) error) error {
	for first := 0; first < i.own.rows; {
		if err := i.next(ctx); err != nil {
			return err
		}
		rows := i.part(s, first)
		i.work.Reset()
		y, carry, err := i.runPart(ctx, s, first, rows, before)
		if err != nil {
			return err
		}
		if after.x == nil {
			err = yield(first, i.answer(s+1, y, carry))
		} else if err = after.x.write(first, y); err == nil {
			err = after.carry.write(first, carry)
		}
		if err != nil {
			return err
		}
		first += rows
	}
	return nil
}

func (i *Inference) runPart(ctx context.Context, s, first, rows int, before between) (y, carry tensor.Matrix, err error) {
	i.scratch.ids = i.own.vertices(i.scratch.ids[:0], first, rows)
	vertices := i.scratch.ids
	var block *sample.Block
	if i.now.stages[s].Hops > 0 {
		if err := i.sampler.Sample(ctx, &i.scratch.batch, 0, 0, vertices); err != nil {
			return y, carry, err
		}
		block = &i.scratch.batch.Blocks[0]
		vertices = block.Vertices
	}
	if s == 0 {
		in, err := i.read(ctx, vertices)
		if err != nil {
			return y, carry, err
		}
		y, carry = i.now.pass.Stage(s, block, in, y, carry)
		return y, carry, nil
	}
	// A layer sees of what travels beside only what its targets have.
	y, carry = i.now.pass.Stage(s, block, nn.Input{}, i.rowsOf(before.x, first, block), i.rowsOf(before.carry, first, nil))
	return y, carry, nil
}
