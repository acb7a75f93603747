package train

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// olderPrefix is what the names of older weights begin with in a checkpoint: then comes
// how many updates they are older.
const olderPrefix = "older."

// older is the weights in front of the first layer's sum as they were before the last
// updates, where several steps of p3 are under way. A step is sent with the weights after
// all but the last p3.inflight - 1 of the steps before it in its epoch; that of epochs'
// first steps is the weights that the epoch begins with, since nothing is under way
// between epochs. While a run goes on these are the weights in hand when it is sent. A run
// that goes on from a checkpoint sends again what was under way, with the weights that it
// had been sent with: so they are part of checkpoints, and it comes to the same bits as
// one that was left alone.
//
// A nil older is of a run whose steps wait for each other.
type older struct {
	device  tensor.Device
	weights tensor.Matrix   // those of now
	rows    []tensor.Matrix // those before the update of a step, by that step; as long as the weights
	params  []nn.Param      // that are kept of them
}

// newOlder is nil where weights are never older.
func (t *learner) newOlder() (*older, error) {
	n := t.olderRows()
	if n == 0 {
		return nil, nil
	}
	front, err := t.model.Front()
	if err != nil {
		return nil, err
	}
	o := &older{device: t.device, weights: t.weights}
	for _, term := range front.Terms {
		o.params = append(o.params, term.Param)
	}
	for range n {
		row := t.kept.Alloc(t.device.Type(), 1, t.model.Size())
		t.device.Zero(row)
		o.rows = append(o.rows, row)
	}
	return o, nil
}

// olderRows is how many rows of older weights a recipe wants.
func (t *learner) olderRows() int {
	if s := &t.recipe.Sharing; s.Strategy == strategy.P3 && s.P3.Pipelined() {
		return s.P3.Inflight - 1
	}
	return 0
}

// count is how many updates a step's weights may be older: of one there are none yet.
func (o *older) count(step int) int {
	if o == nil {
		return 0
	}
	return min(step, len(o.rows))
}

// slots is how many are in use at once beside that of the step in hand.
func (o *older) slots() int {
	if o == nil {
		return 0
	}
	return len(o.rows)
}

// keep keeps the weights before the update of a step.
func (o *older) keep(step int) {
	if o == nil {
		return
	}
	row := o.before(step)
	for _, p := range o.params {
		n := p.Rows * p.Cols
		o.device.Combine(row.View(0, 1, p.Offset, n), 1, o.weights.View(0, 1, p.Offset, n), 0, tensor.Matrix{})
	}
}

// before is the weights before the update of one of the last steps, in the params that
// are kept.
func (o *older) before(step int) tensor.Matrix { return o.rows[step%len(o.rows)] }

// of is the weights that a step is sent with, when so many of its epoch are done, and how
// many these are of.
func (o *older) of(step, done int) (weights tensor.Matrix, version int) {
	version = max(0, step-len(o.rows))
	if version < done {
		return o.before(version), version
	}
	return o.weights, done
}

// sections are what a checkpoint has of them after so many steps of an epoch.
func (o *older) sections(done int) (all []section) {
	for back := 1; back <= o.count(done); back++ {
		row := o.before(done - back)
		all = append(all, section{olderName(back), func(to []float32) []float32 { o.device.Read32(to, row); return to }, o.params})
	}
	return all
}

func olderName(back int) string { return fmt.Sprintf("%s%d.", olderPrefix, back) }

// read reads them from a checkpoint, and changes nothing.
func (o *older) read(c *checkpoint, step, size int) (rows [][]float32, err error) {
	for back := 1; back <= o.count(step); back++ {
		row, err := c.row(olderName(back), o.params, size)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// write takes over what was read.
func (o *older) write(rows [][]float32, done int) {
	for i, row := range rows {
		o.device.Write32(o.before(done-1-i), row)
	}
}

// bytes is the memory that they take, beside what any run does.
func (o *older) bytes() uint64 {
	if o == nil {
		return 0
	}
	return uint64(len(o.rows) * o.weights.Cols * o.weights.Type.Bytes())
}
