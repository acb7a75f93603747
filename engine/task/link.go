package task

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

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

// MRR is the mean of 1/rank of the pairs of a part. OfRanks are the metrics of ranks of recipes that
// name no hits: that one, and the shares of pairs with one of the first ranks.
const MRR = "mrr"

var OfRanks = append([]string{MRR}, hitNames(link.UsualHits)...)

// hitsAt begins the names of the shares of pairs with a rank up to the number that ends them.
const hitsAt = "hits_at_"

func hitNames(at []int) (names []string) {
	for _, most := range at {
		names = append(names, hitsAt+strconv.Itoa(most))
	}
	return names
}

// IsHits reports whether a metric is the share of pairs with a rank up to some number.
func IsHits(metric string) bool {
	number, is := strings.CutPrefix(metric, hitsAt)
	most, err := strconv.Atoi(number)
	return is && err == nil && most > 0 && number == strconv.Itoa(most)
}

func ofRanks() (all []Metric) {
	for _, name := range OfRanks {
		all = append(all, Metric{Name: name, Ranked: true})
	}
	return all
}

// PairMetrics returns the names of the metrics of pairs.
func PairMetrics(s *link.Spec) []string {
	return append([]string{ROCAUC, AveragePrecision, MRR}, hitNames(s.HitsAt())...)
}

// OfPairs returns the metrics of scored pairs by name, with those of ranks if they were ranked.
func OfPairs(s *link.Score, of *link.Spec, ranked bool) map[string]float64 {
	all := map[string]float64{ROCAUC: s.Area, AveragePrecision: s.Precision}
	if ranked {
		all[MRR] = s.Reciprocal
		for i, name := range hitNames(of.HitsAt()) {
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
