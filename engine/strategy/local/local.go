// Package local implements local SGD (Stich, ICLR 2019): each node trains a model of its
// own on its slice of each batch, and every few steps the models are averaged. Between
// averages nodes send each other features, as centric does, and no gradients.
package local

import (
	"errors"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Strategy describes models that stay on their nodes and are averaged.
var Strategy = train.Descriptor{
	Declaration: strategy.Declaration{
		Name: name,
		Keys: func() strategy.Keys { return new(settings).keys() },
		Same: same,
	},
	Deal:     Deal,
	Check:    check,
	Cache:    func(job *strategy.Settings) int { return of(job).cache },
	Forecast: forecast.Hooks{Volume: volume},
	New:      newMethod,
}

const name = "local"

// settings are those of local.
type settings struct {
	average int // steps between averages
	cache   int // rows of other nodes to keep; strategy.Asked: as memory has room
}

func (s *settings) keys() strategy.Keys {
	return strategy.Keys{
		strategy.Number(&s.average, "local.average_every",
			"how many steps each node updates a model of its own before all are averaged, where a job that is interrupted goes on from",
			strategy.Whole{Unit: "STEPS", Default: 8}),
		strategy.Cache(&s.cache, "local.cache"),
	}
}

// of returns local's settings of a job, which have been checked.
func of(job *strategy.Settings) (s settings) {
	_ = s.keys().Parse(job.Values)
	return s
}

// Deal returns the dealer of a job.
func Deal(l peer.Layout, _ strategy.Settings) (deal.Dealer, error) {
	return &dealer{nodes: l.Nodes}, nil
}

// check returns an error if the weights must not depend on how many nodes there are.
// Sweeps need no check: each of their models is averaged by itself.
func check(r *recipe.Recipe, _ *nn.Model, _ dataset.About) error {
	if r.Sharing.Deterministic {
		return errors.New("{strategy} local trains as many models as there are nodes, so the weights depend on how many there are, and {deterministic} promises that they don't: leave one of the two out")
	}
	return nil
}

// same reports whether a run that began with settings a can go on with b: averages of
// other steps are other weights.
func same(a, b *strategy.Settings) bool {
	one, other := a.Strategy == name, b.Strategy == name
	return one == other && (!one || of(a).average == of(b).average)
}

// newMethod trains mini-batches as every strategy on Batched does. Only updates
// differ: each node makes its own, and Homes averages the models. A node that is alone
// has the only model, and trains as single does.
func newMethod(t *train.Trainer) (train.Method, error) {
	b := batched.New(t)
	if !t.Session.Alone() {
		b.Updates = batched.NewHomes(b, of(&t.Recipe.Sharing).average, nil)
	}
	return b, nil
}

// A dealer cuts batches into slices of equal size, one for each node, whoever owns the
// seed vertices. So each model learns from a fair sample of the training vertices, and
// all models count alike in the average. If owners computed their own vertices, models
// would learn from unlike data, and some from more of it than others.
type dealer struct {
	deal.Untimed

	nodes int
}

// Deal implements deal.Dealer.
func (d *dealer) Deal(to []deal.Group, batch []uint32, node int) []deal.Group {
	to, g := deal.More(to[:0])
	g.Roots = append(g.Roots, deal.Slice(batch, node, d.nodes)...)
	return to
}
