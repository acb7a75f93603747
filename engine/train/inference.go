package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// An inference runs a model over all vertices with all their neighbours, stage by
// stage. Where memory allows, a stage is one part over all of them; else it is done for
// ranges of vertices, each with the block of its own neighbours. What it computes is
// the same bits either way.
//
// Models of a sweep take turns: what their parts read is there once for all of them.
//
// Where several nodes share the graph, each does so for the vertices of its shards, and
// before each layer they bring each other the rows that its edges come from.
type inference struct {
	data    *data
	own     extent
	halo    *halo // nil where one node does it all
	device  tensor.Device
	work    tensor.Arena // of one part, reset for each
	*view                // of the model whose turn it is
	views   []*view      // of all
	sampler *sample.Sampler
	memory  uint64 // that it may take
	dir     string // of files for what memory is too small for
	tick    func() // called now and then; may be nil

	batch  sample.Batch
	sparse features.Rows
	ids    []uint32
	rows   []uint32 // of a block's sources
	far    gather.Rows
	inFile bool // what lies between two stages does

	whole whole
	distant
}

// newInference is for the models that are added to it.
func newInference(d *data, device tensor.Device, work tensor.Arena, memory uint64, o Options) (*inference, error) {
	i := sizesOf(d)
	i.device, i.work, i.memory, i.dir = device, work, memory, o.Dir
	return i, i.open(device, o.Threads)
}

// sizesOf is an inference that can be asked what it would take, and no more.
func sizesOf(d *data) *inference {
	return &inference{data: d, own: extentOf(d.shards, func(int) bool { return true })}
}

// add adds a model, whose turn it is from then on.
func (i *inference) add(model *nn.Model, weights tensor.Matrix) *view {
	v := &view{model: model, weights: weights, stages: model.Stages()}
	for s := range v.stages {
		v.costOf = append(v.costOf, costOf(model, s, i.data.features.Sparse(), i.data.entries))
	}
	if i.device != nil {
		v.pass = v.over(i.device, i.work)
	}
	if i.device != nil && i.sampler == nil {
		i.sampler = sample.New(i.data.topology, sample.Options{Fanouts: []int{0}, Form: model.Form()})
	}
	i.view, i.views = v, append(i.views, v)
	return v
}

// share leaves to other nodes, if there are any, the shards that are theirs.
func (i *inference) share(s *shared) {
	if s == nil {
		return
	}
	if s.halo == nil {
		s.halo = newHalo(s, i.data)
	}
	i.halo, i.own = s.halo, s.halo.own
	i.halo.runs(i.stages)
}

// sources counts the vertices whose rows a layer may see.
func (i *inference) sources() int {
	if i.halo == nil {
		return i.own.rows
	}
	return i.own.rows + len(i.halo.ids)
}

// exchanged says whether the rows after a stage are brought to other nodes: a layer
// follows, whose edges come from there.
func (i *inference) exchanged(s, stages int) bool {
	return i.halo != nil && s+1 < stages && i.stages[s+1].Hops > 0
}

// next says whether to go on.
func (i *inference) next(ctx context.Context) error {
	if i.tick != nil {
		i.tick()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// run runs the first stages and shows the rows of all vertices of the extent, in order,
// part by part. Parts begin and end where grains do.
func (i *inference) run(ctx context.Context, stages int, yield func(first int, y tensor.Matrix) error) error {
	if i.own.rows > 0 && i.fits(stages) {
		return i.runWhole(ctx, stages, yield)
	}
	return i.runParts(ctx, stages, yield)
}

// answer is what is shown of the last stage that is run. A head that sees all
// layers sees what was collected beside the rows.
func (i *inference) answer(stages int, y, carry tensor.Matrix) tensor.Matrix {
	if stages < len(i.stages) && i.stages[stages].Hops == 0 && i.stages[stages].CarryIn > 0 {
		return carry
	}
	return y
}

// between is the rows of all vertices after a stage, those of the halo behind them, and
// what travels beside them.
type between struct{ x, carry *table }

func (b between) close() error { return errors.Join(b.x.close(), b.carry.close()) }

func (i *inference) runParts(ctx context.Context, stages int, yield func(first int, y tensor.Matrix) error) (err error) {
	i.inFile = i.tableBytes(stages) > i.memory/2
	var before between
	defer func() { err = errors.Join(err, before.close()) }()
	for s, stage := range i.stages[:stages] {
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
func (i *inference) runStage(ctx context.Context, s int, before, after between, yield func(first int, y tensor.Matrix) error) error {
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

func (i *inference) runPart(ctx context.Context, s, first, rows int, before between) (y, carry tensor.Matrix, err error) {
	i.ids = i.own.vertices(i.ids[:0], first, rows)
	vertices := i.ids
	var block *sample.Block
	if i.stages[s].Hops > 0 {
		if err := i.sampler.Sample(ctx, &i.batch, 0, 0, vertices); err != nil {
			return y, carry, err
		}
		block = &i.batch.Blocks[0]
		vertices = block.Vertices
	}
	if s == 0 {
		in, err := i.read(ctx, vertices)
		if err != nil {
			return y, carry, err
		}
		y, carry = i.pass.Stage(s, block, in, y, carry)
		return y, carry, nil
	}
	// A layer sees of what travels beside only what its targets have.
	y, carry = i.pass.Stage(s, block, nn.Input{}, i.rowsOf(before.x, first, block), i.rowsOf(before.carry, first, nil))
	return y, carry, nil
}
