package peers

import (
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/mesh"
)

// Flag marks questions of jobs among all requests of a kind.
const Flag = 1

// onWire maps each of the engine's kinds to the mesh's.
var onWire = [peer.Kinds]mesh.Kind{
	peer.Control:    mesh.Control,
	peer.Feature:    mesh.Feature,
	peer.Topology:   mesh.Topology,
	peer.Model:      mesh.Model,
	peer.Gradient:   mesh.Gradient,
	peer.Activation: mesh.Activation,
	peer.Shard:      mesh.Shard,
}

// Kinds lists the mesh's kinds that questions use.
func Kinds() []mesh.Kind { return onWire[:] }

// fromWire returns the engine's kind for one of the mesh's.
func fromWire(k mesh.Kind) (peer.Kind, bool) {
	for kind, wire := range onWire {
		if wire == k {
			return peer.Kind(kind), true
		}
	}
	return 0, false
}
