// Package pipe trains on the whole graph at once, as a pipeline of layers: GNNPipe. A
// stage has consecutive layers, and in each stage a way has a part of the vertices, so
// that stages x ways nodes work. One stage alone is graph parallelism, which is the
// strategy graph.
//
// Vertices are divided into chunks, which are runs of shards. Chunks at the same position
// of their ways are computed together, layer by layer, and read each other's current rows.
// Of other chunks they read the rows of this epoch, if those have had their turn, otherwise
// those of a history. So all chunks go forward through all stages, then all go backward in
// exactly the reversed order, and then there is one update.
//
// The result depends on the graph, the ways, the chunks and the settings. It does not
// depend on the number of stages or nodes: gradients are added up by shards, in a fixed
// tree.
//
// A Worker knows neither files nor recipes: Method, the strategy's train.Method, gives
// it features, labels and a loss.
package pipe

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Deal returns the dealer of a job, which deals nothing.
func Deal(l peer.Layout, job strategy.Settings) (deal.Dealer, error) {
	return Nobody, checkShards(&job, len(l.Owners))
}

// Nobody is a Dealer that deals nothing: a Worker finds its own part of the graph.
var Nobody deal.Dealer = nobody{}

type nobody struct{ deal.Untimed }

// Deal implements deal.Dealer.
func (nobody) Deal(to []deal.Group, _ []uint32, _ int) []deal.Group { return to[:0] }

// Check returns an error if a model cannot be trained by the strategy.
func Check(m *nn.Model, s *Settings) error {
	layers := m.Hops()
	switch {
	case m.Spec().Jump != nn.JumpNone:
		return fmt.Errorf("model.jump=%s lets the head read the rows of all layers, which would have to travel through all stages: leave it out, or use another strategy", m.Spec().Jump)
	case layers == 0:
		return errors.New("an mlp has no layers along edges, so a pipeline saves it nothing: use another strategy")
	case !s.Graph && s.Stages > layers:
		return fmt.Errorf("pipe.stages=%d: the model has %d layers, and each stage needs one: set %d stages or fewer", s.Stages, layers, layers)
	}
	return nil
}
