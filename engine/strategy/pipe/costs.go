package pipe

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/nn"
)

// Costs are what a machine takes for a job's work, in seconds. All machines are taken for
// alike: a shard was timed on one of them, and may be computed on another.
type Costs struct {
	// Of each of the model's stages, of each shard: forward and backward. Again is forward
	// once more, where backward makes passes again.
	Forward, Again, Backward [][]float64
	// Shard is what a stage of the pipeline does of each shard whatever layers it has.
	Shard float64
	Row   float64 // of moving a number from one row to another
	Sum   float64 // of adding up a number of a shard's gradient
	Step  float64 // of an update of all weights, with what is looked at before
	// Timed says whether they were measured; else they are as Nominal has them.
	Timed bool
}

// pace is how many multiplications a second a machine is taken for where nothing is
// measured: one that any machine of today comes near.
const pace = 1e10

// Nominal are the costs where nothing is measured: they depend on the model and on the
// graph alone.
func Nominal(infos []nn.StageInfo, c *Census, weights int) *Costs {
	t := newCosts(len(infos), len(c.Sources))
	for s := range infos {
		for shard := range c.Sources {
			product, along := work(&infos[s], c.vertices(shard), c.Entries[shard])
			forward := (product + along) / pace
			// Backward has a product for the weights and one for the rows.
			t.Forward[s][shard], t.Again[s][shard], t.Backward[s][shard] = forward, forward, forward+product/pace
		}
	}
	const number = 1 / pace
	t.Row, t.Sum, t.Shard, t.Step = number, number, number*float64(weights), 4*number*float64(weights)
	return t
}

func newCosts(stages, shards int) *Costs {
	table := func() (t [][]float64) {
		for range stages {
			t = append(t, make([]float64, shards))
		}
		return t
	}
	return &Costs{Forward: table(), Again: table(), Backward: table()}
}

// A Timing is what a node tells all others of what it has timed: of some shards, of each
// of the model's stages in turn, forward, again and backward.
type Timing struct {
	Shards []uint32
	Times  []float64
	Rest   rest
}

// rest is what was timed of no layer, and what memory the node has for its work; 0: nobody
// knows.
type rest struct {
	Shard, Row, Sum, Step float64
	Memory                uint64
	Burden                burden
}

// directions of a timing.
const directions = 3

// encode writes it for others.
func (t *Timing) encode() (to []byte, err error) {
	to = binary.LittleEndian.AppendUint32(nil, uint32(len(t.Shards)))
	for _, of := range []any{t.Shards, t.Times, t.Rest} {
		if to, err = binary.Append(to, binary.LittleEndian, of); err != nil {
			return nil, fmt.Errorf("encode what layers take: %w", err)
		}
	}
	return to, nil
}

// readTiming reads what another node tells of a model of so many stages, on a graph of so
// many shards.
func readTiming(m []byte, stages, shards int) (*Timing, error) {
	t := &Timing{}
	if len(m) < 4 {
		return nil, fmt.Errorf("tells in %d bytes what layers take, which is not what that takes", len(m))
	}
	n := int(binary.LittleEndian.Uint32(m))
	if n > shards || len(m) != 4+4*n+8*n*stages*directions+binary.Size(t.Rest) {
		return nil, fmt.Errorf("tells in %d bytes what %d layers take for %d of %d shards, which is not what that takes: run the same version of hopmesh on all nodes of the job", len(m), stages, n, shards)
	}
	t.Shards, t.Times = make([]uint32, n), make([]float64, n*stages*directions)
	at := 4
	for _, of := range []any{t.Shards, t.Times, &t.Rest} {
		size, err := binary.Decode(m[at:], binary.LittleEndian, of)
		if err != nil {
			return nil, fmt.Errorf("tells what layers take: %w", err)
		}
		at += size
	}
	for _, shard := range t.Shards {
		if int(shard) >= shards {
			return nil, fmt.Errorf("has timed shard %d of %d", shard, shards)
		}
	}
	for _, seconds := range append(slices.Clip(t.Times), t.Rest.Shard, t.Rest.Row, t.Rest.Sum, t.Rest.Step) {
		if !(seconds >= 0) || seconds > math.MaxUint32 {
			return nil, fmt.Errorf("takes %g s for a layer of a shard", seconds)
		}
	}
	for _, seconds := range []float64{t.Rest.Burden.Large, t.Rest.Burden.Small} {
		if !(math.Abs(seconds) <= math.MaxUint32) {
			return nil, fmt.Errorf("takes %g s for a piece that it gives or takes", seconds)
		}
	}
	return t, nil
}

// Measured are the costs of what nodes have timed. What nobody has timed of a layer takes
// as much longer than Nominal has it as what was timed. Where a clock stands still, they
// are Nominal.
func Measured(all []*Timing, infos []nn.StageInfo, c *Census, weights int) *Costs {
	t := Nominal(infos, c, weights)
	tables := [directions][][]float64{t.Forward, t.Again, t.Backward}
	known := make([]bool, len(c.Sources))
	var took, thought [directions][]float64
	for d := range tables {
		took[d], thought[d] = make([]float64, len(infos)), make([]float64, len(infos))
	}
	sum := 0.0
	for _, of := range all {
		for i, shard := range of.Shards {
			if known[shard] {
				continue // somebody has timed it already
			}
			known[shard] = true
			for s := range infos {
				for d := range tables {
					seconds := of.Times[(i*len(infos)+s)*directions+d]
					took[d][s], thought[d][s] = took[d][s]+seconds, thought[d][s]+tables[d][s][shard]
					tables[d][s][shard] = seconds
					sum += seconds
				}
			}
		}
	}
	if sum == 0 {
		return Nominal(infos, c, weights)
	}
	for d := range tables {
		for s := range infos {
			for shard := range tables[d][s] {
				if !known[shard] && thought[d][s] > 0 {
					tables[d][s][shard] *= took[d][s] / thought[d][s]
				}
			}
		}
	}
	t.Shard, t.Row, t.Sum, t.Step, t.Timed = 0, 0, 0, 0, true
	nodes := 0.0
	for _, of := range all {
		if len(of.Shards) > 0 {
			nodes++
			t.Shard, t.Row, t.Sum, t.Step = t.Shard+of.Rest.Shard, t.Row+of.Rest.Row, t.Sum+of.Rest.Sum, t.Step+of.Rest.Step
		}
	}
	t.Shard, t.Row, t.Sum, t.Step = t.Shard/nodes, t.Row/nodes, t.Sum/nodes, t.Step/nodes
	return t
}
