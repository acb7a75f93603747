package peers

import (
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/mesh"
)

// Flag marks the questions of jobs among all that is asked of a kind.
const Flag = 1

// onWire says what the mesh calls each kind of the engine's.
var onWire = [strategy.Kinds]mesh.Kind{
	strategy.Control:    mesh.Control,
	strategy.Feature:    mesh.Feature,
	strategy.Topology:   mesh.Topology,
	strategy.Model:      mesh.Model,
	strategy.Gradient:   mesh.Gradient,
	strategy.Activation: mesh.Activation,
	strategy.Shard:      mesh.Shard,
}

// Kinds lists the kinds that questions come in.
func Kinds() []mesh.Kind { return onWire[:] }

// fromWire finds the engine's kind.
func fromWire(k mesh.Kind) (strategy.Kind, bool) {
	for kind, wire := range onWire {
		if wire == k {
			return strategy.Kind(kind), true
		}
	}
	return 0, false
}
