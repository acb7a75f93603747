package task

import (
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// links is the task of finding the pairs of vertices that an edge joins.
var links = Kind{
	Name:    "link",
	Pairs:   true,
	Losses:  []Loss{{BCE, "probability of an edge = 1 / (1 + exp(-s)), where s is the decoder's score of the rows of both vertices."}},
	Metrics: []Metric{{Name: ROCAUC, Ranked: true}, {Name: AveragePrecision, Ranked: true}},
	Column:  "embedding",
	Scores:  "the embedding of the vertex",
	make:    func(s Spec) Task { return pairs{link.NewLoss(link.NewDecoder(s.Decoder))} },
}

// pairs implements Task.
type pairs struct{ of *link.Loss }

// Words implements Task.
func (pairs) Words() int { return 0 }

// OnProcessor implements Task.
func (pairs) OnProcessor() bool { return true }

// Loss implements Task.
func (p pairs) Loss(device tensor.Device, dz, z tensor.Matrix, words []int32, scale float64) (sum float64) {
	return p.of.Sum(device, dz, z, words, scale)
}

// Meter implements Task.
func (pairs) Meter() Meter { return nil }
