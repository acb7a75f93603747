package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// grain is how many vertices are judged together, and what the first vertex of a
// part is a multiple of: sums over them do not depend on how large parts are.
const grain = 1024

// An inference runs a model over all vertices with all their neighbours, stage by
// stage. Where memory allows, a stage is one part over the whole graph; else it is
// done for ranges of vertices, each with the block of its own neighbours. What it
// computes is the same bits either way.
type inference struct {
	data    *data
	device  tensor.Device
	work    tensor.Arena // of one part, reset for each
	model   *nn.Model
	pass    *nn.Pass
	stages  []nn.StageInfo
	costOf  []stageCost // of the stages
	sampler *sample.Sampler
	memory  uint64 // that it may take
	dir     string // of files for what memory is too small for
	tick    func() // called now and then; may be nil

	batch  sample.Batch
	sparse features.Rows
	ids    []uint32

	whole whole
}

func newInference(d *data, device tensor.Device, work tensor.Arena, model *nn.Model, weights tensor.Matrix, memory uint64, dir string) *inference {
	i := sizesOf(d, model)
	i.device, i.work, i.model, i.pass, i.memory, i.dir = device, work, model, model.NewPass(device, work), memory, dir
	i.pass.Weights = weights
	i.sampler = sample.New(d.topology, sample.Options{Fanouts: []int{0}, Form: model.Form()})
	return i
}

// sizesOf is an inference that can be asked what it would take, and no more.
func sizesOf(d *data, model *nn.Model) *inference {
	i := &inference{data: d, stages: model.Stages()}
	for s := range i.stages {
		i.costOf = append(i.costOf, costOf(model, s, d.features.Sparse(), d.entries))
	}
	return i
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

// run runs the first stages and shows the rows of all vertices, in order, part by
// part. The first vertex of each part is a multiple of grain.
func (i *inference) run(ctx context.Context, stages int, yield func(first int, y tensor.Matrix) error) error {
	if i.wholeBytes(stages) <= i.memory {
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

// between is the rows of all vertices after a stage, and what travels beside them.
type between struct{ x, carry *table }

func (b between) close() error { return errors.Join(b.x.close(), b.carry.close()) }

func (i *inference) runParts(ctx context.Context, stages int, yield func(first int, y tensor.Matrix) error) (err error) {
	n := i.data.topology.Vertices()
	inFile := i.tableBytes(stages) > i.memory/2
	var before between
	defer func() { err = errors.Join(err, before.close()) }()
	for s, stage := range i.stages[:stages] {
		var after between
		last := s == stages-1
		if !last {
			if after.x, err = newTable(i.device, n, stage.Out, inFile, i.dir); err != nil {
				return err
			}
			if after.carry, err = newTable(i.device, n, stage.CarryOut, inFile, i.dir); err != nil {
				return errors.Join(err, after.close())
			}
		}
		if err := i.runStage(ctx, s, before, after, yield); err != nil {
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
	n := i.data.topology.Vertices()
	for first := 0; first < n; {
		if err := i.next(ctx); err != nil {
			return err
		}
		rows := i.part(s, first)
		i.work.Reset()
		y, carry, err := i.runPart(s, first, rows, before)
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

func (i *inference) runPart(s, first, rows int, before between) (y, carry tensor.Matrix, err error) {
	vertices := i.consecutive(first, rows)
	var block *sample.Block
	if i.stages[s].Hops > 0 {
		if err := i.sampler.Sample(&i.batch, 0, 0, vertices); err != nil {
			return y, carry, err
		}
		block = &i.batch.Blocks[0]
		vertices = block.Vertices
	}
	if s == 0 {
		y, carry = i.pass.Stage(s, block, i.read(vertices), y, carry)
		return y, carry, nil
	}
	y, carry = i.pass.Stage(s, block, nn.Input{}, i.rowsOf(before.x, first, block), i.rowsOf(before.carry, first, block))
	return y, carry, nil
}

// consecutive is the ids of some vertices in a row.
func (i *inference) consecutive(first, n int) []uint32 {
	i.ids = i.ids[:0]
	for v := range n {
		i.ids = append(i.ids, uint32(first+v))
	}
	return i.ids
}
