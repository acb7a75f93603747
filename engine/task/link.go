package task

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// links is the task of finding the pairs of vertices that an edge joins.
var links = Kind{
	Name:  "link",
	Pairs: true,
	Losses: []Loss{
		{BCE, "probability of an edge = 1 / (1 + exp(-s)), where s is the decoder's score of the rows of both vertices."},
		{link.BPR, "the decoder's score s of the rows of both vertices orders pairs: the higher, the likelier is an edge. It is no probability."},
		{link.Margin, "the decoder's score s of the rows of both vertices orders pairs: the higher, the likelier is an edge. It is no probability."},
		{link.Softmax, "the decoder's score s of the rows of both vertices orders pairs: the higher, the likelier is an edge. It is no probability."},
	},
	Metrics: slices.Concat([]Metric{{Name: ROCAUC, Ranked: true}, {Name: AveragePrecision, Ranked: true}}, ofRanks()),
	Column:  "embedding",
	Scores:  "the embedding of the vertex",
	make:    func(s Spec) Task { return pairs{link.NewLoss(cmp.Or(s.Links, link.Default()), s.Loss, s.Width)} },
}

// MRR is the mean of 1/rank of the pairs of a part. OfRanks are the metrics of ranks: that one, and
// the shares of pairs with one of the first ranks.
const MRR = "mrr"

var OfRanks = append([]string{MRR}, hitNames()...)

func hitNames() (names []string) {
	for _, most := range link.HitsAt {
		names = append(names, fmt.Sprintf("hits_at_%d", most))
	}
	return names
}

func ofRanks() (all []Metric) {
	for _, name := range OfRanks {
		all = append(all, Metric{Name: name, Ranked: true})
	}
	return all
}

// OfPairs returns the metrics of scored pairs by name, with those of ranks if they were ranked.
func OfPairs(s *link.Score, ranked bool) map[string]float64 {
	all := map[string]float64{ROCAUC: s.Area, AveragePrecision: s.Precision}
	if ranked {
		all[MRR] = s.Reciprocal
		for i, name := range hitNames() {
			all[name] = s.Hits[i]
		}
	}
	return all
}

// pairs implements Task and Learned.
type pairs struct{ of *link.Loss }

// Attach implements Learned.
func (p pairs) Attach(weights, gradients tensor.Matrix) { p.of.Attach(weights, gradients) }

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
