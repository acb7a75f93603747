// Package costs holds how long the layers of a pipeline take for each shard: by formula, or by
// what nodes have measured and sent each other.
package costs

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
)

// Costs are the seconds that a job's layers take. All machines count as alike: the
// timings of all nodes are averaged, and any node may compute any layer.
type Costs struct {
	// Forward and Backward are indexed by stage of the model, then by shard.
	Forward, Backward [][]float64
	// Timed reports whether the layers were timed; otherwise the costs are Nominal.
	Timed bool
}

// pace is the speed assumed where nothing is measured, in multiplications per second.
// Any current machine comes near it.
const pace = 1e10

// Nominal returns the costs by formula: they depend on the model and the graph alone.
func Nominal(infos []nn.StageInfo, c *census.Census) *Costs {
	t := &Costs{}
	for s := range infos {
		forward, backward := make([]float64, len(c.Sources)), make([]float64, len(c.Sources))
		for shard := range c.Sources {
			product, along := arrange.Work(&infos[s], c.Vertices(shard), c.Entries[shard])
			forward[shard] = (product + along) / pace
			// Backward has one product for the weights and one for the rows.
			backward[shard] = (2*product + along) / pace
		}
		t.Forward, t.Backward = append(t.Forward, forward), append(t.Backward, backward)
	}
	return t
}

// A Timing is what one node measured before the nodes choose an arrangement. It is sent
// to all other nodes.
type Timing struct{ Layers []LayerTime }

// A LayerTime is the time of one of the model's stages over all shards that were timed,
// in seconds, and the Nominal time of the same work.
type LayerTime struct{ Forward, Backward, NominalForward, NominalBackward float64 }

// Encode returns the message for other nodes.
func (t *Timing) Encode() (to []byte, err error) {
	if to, err = binary.Append(nil, binary.LittleEndian, t.Layers); err != nil {
		return nil, fmt.Errorf("encode the times of layers: %w", err)
	}
	return to, nil
}

// ReadTiming decodes another node's message about a model of so many stages.
func ReadTiming(m []byte, stages int) (*Timing, error) {
	t := &Timing{Layers: make([]LayerTime, stages)}
	if want := binary.Size(t.Layers); len(m) != want {
		return nil, fmt.Errorf("sent the times of %d layers in %d bytes instead of %d: run the same version of hopmesh on all nodes of the job", stages, len(m), want)
	}
	if _, err := binary.Decode(m, binary.LittleEndian, t.Layers); err != nil {
		return nil, fmt.Errorf("sent malformed times of layers: %w", err)
	}
	for _, l := range t.Layers {
		for _, seconds := range []float64{l.Forward, l.Backward, l.NominalForward, l.NominalBackward} {
			if !(seconds >= 0) || seconds > math.MaxUint32 {
				return nil, fmt.Errorf("reports %g s for a layer", seconds)
			}
		}
	}
	return t, nil
}

// Measured returns the costs by the timings of all nodes: each layer takes as many times
// its Nominal time as it did on the shards that were timed. If nothing was timed, the
// costs are Nominal.
func Measured(all []*Timing, infos []nn.StageInfo, c *census.Census) *Costs {
	t := Nominal(infos, c)
	for s := range infos {
		var sum LayerTime
		for _, of := range all {
			l := of.Layers[s]
			sum.Forward, sum.NominalForward = sum.Forward+l.Forward, sum.NominalForward+l.NominalForward
			sum.Backward, sum.NominalBackward = sum.Backward+l.Backward, sum.NominalBackward+l.NominalBackward
		}
		if sum.Forward+sum.Backward == 0 || sum.NominalForward == 0 || sum.NominalBackward == 0 {
			return Nominal(infos, c)
		}
		for shard := range c.Sources {
			t.Forward[s][shard] *= sum.Forward / sum.NominalForward
			t.Backward[s][shard] *= sum.Backward / sum.NominalBackward
		}
	}
	t.Timed = true
	return t
}

// A Network is what the slowest of the nodes gets.
type Network struct {
	Bandwidth float64 // bytes per second that a node receives
	RoundTrip float64 // seconds of the smallest question
}

// Usual is a typical network, for where nothing is measured.
var Usual = Network{Bandwidth: 1e9, RoundTrip: 1e-4}

// Seconds returns the time of so many bytes in so many round trips.
func (n Network) Seconds(bytes, trips float64) float64 { return bytes/n.Bandwidth + trips*n.RoundTrip }
