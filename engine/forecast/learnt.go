package forecast

import (
	"math"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// Rowed is what a job learns of each vertex in place of features.
type Rowed struct {
	Learnt int     // columns of learnt rows; 0: there are none
	Held   float64 // the share of these rows that a node has; 1: all
}

// learnt is where learnt rows are.
type learnt struct {
	rows  uint64 // on the node that has most of them
	apart bool   // each node has those of some shards
}

// learntOn returns where a job's learnt rows are on a mesh, as its nodes decide it; where they must, each
// has all.
func learntOn(j *job, m *mesh, must bool) learnt {
	r, all := j.Recipe, j.Graph.About.Vertices
	table := embedding.Bytes(all, j.Graph.Columns-r.Embeddings, r.Embeddings, r.Optimizer)
	switch {
	case m.layout.Nodes == 1 || must || !r.MayPart():
		return learnt{rows: all}
	case r.EmbeddingsAt != recipe.AtOwners && (j.Memory == 0 || embedding.Fits(7*4*uint64(j.model.Size())+table, j.Memory-min(j.Memory, budget.Program))):
		return learnt{rows: all}
	}
	of := learnt{apart: true}
	for node := range m.layout.Nodes {
		of.rows = max(of.rows, embedding.Held(&m.layout, node))
	}
	return of
}

// share returns the share of all learnt rows that a node has.
func (w *learnt) share(j *job) float64 {
	if !w.apart {
		return 1
	}
	return float64(w.rows) / float64(j.Graph.About.Vertices)
}

// AddLearnt adds the gradients of learnt rows, which each node sends to all others that have the rows, and
// about the rows that nodes ask each other for when a step begins.
func (v *Volume) AddLearnt(s *Step) {
	if s.Learnt == 0 {
		return
	}
	all, least, others := uint64(0), uint64(math.MaxUint64), uint64(s.Nodes-1)
	for i := range s.Loads {
		questions, bytes := embedding.Sent(s.Loads[i].Groups, s.Loads[i].Inputs, s.Learnt)
		all, least = all+bytes, min(least, bytes)
		if s.Held < 1 {
			rows := float64(s.Loads[i].Inputs) * (1 - s.Held)
			v.All.Bytes[peer.Feature] += uint64(rows * 4 * float64(1+s.Learnt))
			v.All.Requests[peer.Feature] += others
			v.Exposed += uint64(rows * 4 * float64(1+s.Learnt) / float64(s.Nodes))
			bytes = bytes * 2 / uint64(s.Nodes) // of n owners' rows a node has those of two
			questions = 2 * questions
		}
		v.All.Bytes[peer.Gradient] += bytes * others
		v.All.Requests[peer.Gradient] += questions * others
	}
	v.Exposed, v.Asked, v.Rounds = v.Exposed+all-least, v.Asked+2*int(others), v.Rounds+2
}
