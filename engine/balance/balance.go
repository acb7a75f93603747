// Package balance counts what the training vertices of all nodes of a run have to be learnt,
// and returns the weights of losses by which rare targets count as much as frequent ones.
package balance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/session"
)

// countsAt is the message in which nodes exchange their counts: after the one by which they
// meet, and before those by which they choose how to share the run.
var countsAt = exchange.Tag{Step: 1, Lane: exchange.LaneMessages}

// Weights returns the weight of each class, or of a yes in each column. They are the same on
// all nodes, however the shards are shared, since only whole numbers travel.
func Weights(ctx context.Context, s *session.Session, d *dataset.Graph) ([]float64, error) {
	counts := New(&d.About)
	for number, shard := range d.Shards {
		if s.Owns(number) {
			counts.Add(shard, d.Split)
		}
	}
	if s.Alone() {
		return counts.Weights(), nil
	}
	messages, err := s.GatherVersioned(ctx, countsAt, counts.Export())
	if err != nil {
		return nil, fmt.Errorf("count the targets of all nodes: %w", err)
	}
	total := New(&d.About)
	for node, m := range messages {
		if err := total.Merge(m, d.About.Vertices); err != nil {
			return nil, &session.Agreed{Err: fmt.Errorf("node %s counts its targets: %w", s.Name(node), err)}
		}
	}
	return total.Weights(), nil
}

// Counts are how many training vertices have each class, or a yes and a no in each column.
type Counts struct {
	with    []uint64
	without []uint64 // nil: of classes, of which a vertex has one
}

// New returns counts of nothing.
func New(of *dataset.About) *Counts {
	c := &Counts{with: make([]uint64, of.Classes)}
	if of.Targets != graph.OneClass {
		c.without = make([]uint64, of.Classes)
	}
	return c
}

// Add counts the training vertices of a shard.
func (c *Counts) Add(s *graph.Shard, split int) {
	if !s.HasTargets() || split >= len(s.Marks) {
		return
	}
	for row, mark := range s.Marks[split] {
		switch {
		case mark != graph.Train:
		case c.without == nil:
			if label := s.Labels[row]; label >= 0 {
				c.with[label]++
			}
		default:
			for column, cell := range s.YesOrNo[row*s.Classes:][:s.Classes] {
				switch cell {
				case 0:
					c.without[column]++
				case 1:
					c.with[column]++
				}
			}
		}
	}
}

// Export returns the counts as a message.
func (c *Counts) Export() (message []byte) {
	for _, list := range [][]uint64{c.with, c.without} {
		for _, n := range list {
			message = binary.AppendUvarint(message, n)
		}
	}
	return message
}

var errCounts = errors.New("what it sends are no counts: run the same version on all nodes")

// Merge adds what another node has exported: of at most so many vertices.
func (c *Counts) Merge(message []byte, most uint64) error {
	for _, list := range [][]uint64{c.with, c.without} {
		for i := range list {
			n, size := binary.Uvarint(message)
			if size <= 0 || n > most-min(most, list[i]) {
				return errCounts
			}
			list[i], message = list[i]+n, message[size:]
		}
	}
	if len(message) > 0 {
		return errCounts
	}
	return nil
}

// Weights returns the weights. Those of classes are such that all classes that occur weigh the
// same together, and the average vertex 1. That of a yes is such that all of a column weigh as
// much as all of its noes. What occurs nowhere has the weight 1.
func (c *Counts) Weights() []float64 {
	weights := make([]float64, len(c.with))
	occurring, all := 0, uint64(0)
	for _, n := range c.with {
		if all += n; n > 0 {
			occurring++
		}
	}
	for i, n := range c.with {
		weights[i] = 1
		switch {
		case n == 0:
		case c.without == nil:
			weights[i] = float64(all) / (float64(occurring) * float64(n))
		case c.without[i] > 0:
			weights[i] = float64(c.without[i]) / float64(n)
		}
	}
	return weights
}
