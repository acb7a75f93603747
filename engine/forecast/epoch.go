package forecast

import (
	"context"
	"math"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// loads counts the work of all nodes in each of the steps.
func (j *job) loads(ctx context.Context, m *mesh, look *look) ([][]*load, error) {
	nodes := m.layout.Nodes
	loads := make([][]*load, len(j.steps))
	for at := range loads {
		loads[at] = make([]*load, nodes)
	}
	for i := range nodes * len(loads) {
		at, node := i/nodes, i%nodes
		if look.sight != nil { // what a node sees serves all of its steps
			at, node = i%len(loads), i/len(loads)
		}
		var err error
		if loads[at][node], err = j.counter.step(ctx, m, look, j.steps[at], at, node); err != nil {
			return nil, err
		}
	}
	return loads, nil
}

// seeds returns how many times the seed vertices of the counted steps an epoch has: its
// last step may be a small one.
func (j *job) seeds() float64 {
	n := 0
	for _, batch := range j.steps {
		n += len(batch)
	}
	return float64(len(j.Graph.Training)) / float64(n)
}

// epoch returns what an epoch sends by what some of its steps send: sums come with steps,
// the rest with seed vertices.
func (j *job) epoch(some peer.Counts) peer.Counts {
	by, steps := scaled(some, j.seeds()), scaled(some, float64(j.count)/float64(len(j.steps)))
	for _, k := range []peer.Kind{peer.Gradient, peer.Model, peer.Control} {
		by.Bytes[k], by.Requests[k] = steps.Bytes[k], steps.Requests[k]
	}
	return by
}

// scaled returns counts times a factor.
func scaled(c peer.Counts, by float64) (to peer.Counts) {
	for k := range peer.Kinds {
		to.Bytes[k] = uint64(math.Round(float64(c.Bytes[k]) * by))
		to.Requests[k] = uint64(math.Round(float64(c.Requests[k]) * by))
	}
	return to
}
