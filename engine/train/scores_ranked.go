package train

import (
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// The area under the ROC curve is of all vertices of a mark together: each node brings
// the logits of its own to all others.

// ranked is the marks whose logits are, each with what they are called between nodes.
var ranked = [...]struct {
	mark graph.Mark
	what int // after the stages
}{{graph.Validation, valLogits}, {graph.Test, testLogits}}

// rankings are the labels of other nodes' vertices that are ranked, which all nodes know:
// node after node, and where each node's begin.
type rankings struct {
	labels []int32
	from   []int
}

// exchangeLogits gives each judge that ranks the logits of all nodes.
func (t *trainer) exchangeLogits() error {
	h := t.shared.halo
	for i, r := range ranked {
		judge, known := t.judges.of[r.mark], &h.rankings[i]
		if known.from == nil {
			*known = t.rankings(r.mark)
		}
		row := 4 * t.data.about.Classes
		p := parcel{what: len(h.stages) + r.what, row: row}
		h.offer(p, bytesOf(judge.Logits()))
		// What is offered lies before it, and stays.
		to := bytesOf(judge.Room(known.labels))
		for node, taker := range h.takers {
			taker.parcel, taker.kind, taker.to = p, strategy.Activation, to[known.from[node]*row:known.from[node+1]*row]
		}
		if err := h.take(); err != nil {
			return err
		}
	}
	return nil
}

// rankings finds them.
func (t *trainer) rankings(mark graph.Mark) rankings {
	k := rankings{from: make([]int, 1, len(t.shared.work.Nodes)+1)}
	for node := range t.shared.work.Nodes {
		for shard, s := range t.data.shards {
			if node == t.shared.work.Self || t.shared.layout.Owners[shard] != node || s.Labels == nil || t.data.split >= len(s.Marks) {
				continue
			}
			for row, label := range s.Labels {
				if label >= 0 && s.Marks[t.data.split][row] == mark {
					k.labels = append(k.labels, label)
				}
			}
		}
		k.from = append(k.from, len(k.labels))
	}
	return k
}
