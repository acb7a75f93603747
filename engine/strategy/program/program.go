// Package program hands each step to a program beside the node, which computes it: a model
// that hopmesh does not know. The nodes deal, sample and gather as for their own models, and
// add up what the programs give them. Beside the steps, a program may have batches of any
// vertices drawn, to evaluate its model or to train in its own way.
//
// What a program keeps is what the job goes on from, in the checkpoints of the job. Nodes that
// go on together take that of one of them.
package program

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Name is what users call the strategy.
const Name = "program"

// Strategy describes jobs whose steps are computed by programs.
var Strategy = train.Descriptor{
	Declaration: strategy.Declaration{
		Name: Name, Elsewhere: true, Sweepless: "has steps computed by a program, which has one model",
		Keys: func() strategy.Keys { return new(settings).keys() },
	},
	Deal: dealer, Processor: true, Check: check,
	Cache:    func(*strategy.Settings) int { return strategy.Asked },
	Forecast: forecast.Hooks{Volume: forecast.Batched},
	New:      newMethod,
}

const (
	byOwner  = "owner"
	bySlices = "slices"
	noRun    = "none"
)

// settings are those of program.
type settings struct {
	deal string // owner or slices
	run  string // which processes compute the job
}

func (s *settings) keys() strategy.Keys {
	return strategy.Keys{
		strategy.Word(&s.deal, "program.deal",
			"who computes a seed vertex: the node that owns it, or each node a slice of the batch",
			byOwner, bySlices),
		strategy.Text(&s.run, "program.run", "none|KEY", noRun,
			"the word by which the processes of a run find their job", checkRun),
	}
}

var key = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

func checkRun(value string) error {
	if !key.MatchString(value) {
		return errors.New("it is 1 to 64 letters, digits and dashes")
	}
	return nil
}

// of returns the settings of a job, which have been checked.
func of(job *strategy.Settings) (s settings) {
	_ = s.keys().Parse(job.Values)
	return s
}

func dealer(l peer.Layout, job strategy.Settings) (deal.Dealer, error) {
	if of(&job).deal == bySlices {
		return centric.Deal(l, job)
	}
	return leap.Owners(l, false), nil
}

func check(r *recipe.Recipe, _ *nn.Model, _ dataset.About) error {
	if r.Sharing.Deterministic {
		return fmt.Errorf("{strategy} %s has each node's program compute in its own way, so the weights depend on how many nodes there are, and {deterministic} promises that they don't: leave one of the two out", Name)
	}
	return nil
}
