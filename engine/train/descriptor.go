package train

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/schedule"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A Descriptor describes a strategy, with what it declares of its settings. Each of its
// functions but New may be nil for the default.
type Descriptor struct {
	strategy.Declaration

	// Deal returns the dealer of a job's mini-batches, or an error if the job can't be
	// dealt so; nil: the strategy trains on one node.
	Deal func(peer.Layout, strategy.Settings) (deal.Dealer, error)
	// Processor means that the strategy computes on the CPU, whatever device there is.
	Processor bool
	// Isolated means that nodes sample from what they have been given, and ask each
	// other for no neighbours.
	Isolated bool

	// Check returns an error if a recipe can't be trained so, naming the setting.
	// CheckSweep returns one if the models of this sweep can't be trained side by side.
	Check      func(r *recipe.Recipe, model *nn.Model, about dataset.About) error
	CheckSweep func(r *recipe.Recipe) error
	// Advice returns what to make smaller where memory is short; nil: as for
	// mini-batches.
	Advice func(r *recipe.Recipe) []budget.Advice

	// Wrap returns the connection to the other nodes that the run is to use.
	Wrap func(peer.Peers) peer.Peers
	// Serve registers what other nodes may request of this one, and returns the part
	// that the method needs. Ready is called once there is data to serve.
	Serve func(peer.Peers) any
	Ready func(t *Trainer, served any) error

	// Asking returns how the rows of a step are requested; nil: in the usual way.
	Asking func(*strategy.Settings) gather.Options
	// Cache returns how many rows of other nodes are fetched at the start, or strategy.Asked
	// if those that steps bring are kept; nil: none.
	Cache func(*strategy.Settings) int

	// Forecast says what the strategy sends and takes on nodes that need not be there.
	Forecast forecast.Hooks
	// New makes the method.
	New func(t *Trainer) (Method, error)
	// Choose is for a strategy that chooses another one once the nodes have met. It has
	// no method of its own.
	Choose func(ctx context.Context, t *Trainer) (Chooser, error)
}

// A Chooser chooses the strategy of a run whose recipe names none. All nodes decide alike.
type Chooser interface {
	// Begin is called before the steps of an epoch from one on, before any is prepared. It may
	// set Sharing.Turns.
	Begin(ctx context.Context, epoch, step int) error
	// Trying reports whether strategies are tried in an epoch. What it takes is no measure of the
	// one in use.
	Trying(epoch int) bool
	// Stepped hears how long a step took on this node.
	Stepped(epoch, step int, took time.Duration)
	// Reconsider changes the strategy after an epoch if another is faster.
	Reconsider(ctx context.Context, e *trained.Epoch) error
	// Follow goes over to an entry of the schedule, ahead of its first epoch.
	Follow(ctx context.Context, e *schedule.Entry) error
}

// A Deal is by whom a step is dealt, and how its rows are requested.
type Deal struct {
	Dealer deal.Dealer
	Asking gather.Options
}

// Strategies are those that a program has.
type Strategies []Descriptor

// Of returns the descriptor of a strategy: one that deals nothing for a name that has
// none, such as single.
func (s Strategies) Of(name string) Descriptor {
	i := s.index(name)
	if i < 0 {
		return Descriptor{Declaration: strategy.Declaration{Name: name}}
	}
	return s[i]
}

// Has reports whether a strategy is one of them.
func (s Strategies) Has(name string) bool { return s.index(name) >= 0 }

func (s Strategies) index(name string) int {
	return slices.IndexFunc(s, func(d Descriptor) bool { return d.Name == name })
}

// known returns an error unless a strategy is one of them, or left to choose.
func (s Strategies) known(name string) error {
	if s.Has(name) || slices.Contains([]string{"", strategy.Auto, strategy.Single}, name) {
		return nil
	}
	return fmt.Errorf("there is no strategy %q: choose one of %s", name, strings.Join(s.Choices(), ", "))
}

// Check implements recipe.Rules.
func (s Strategies) Check(r *recipe.Recipe, model *nn.Model, about dataset.About) error {
	if err := s.known(r.Sharing.Strategy); err != nil {
		return err
	}
	d := s.Of(cmp.Or(r.Sharing.Strategy, strategy.Single))
	if given := r.Model.Model; d.Elsewhere != (given == nn.Program) {
		return fmt.Errorf("{strategy} %s and {model} %s don't go together, since a model that a program of yours computes needs both to be %s: leave that one out, and start such jobs by mesh.loader of Python's package hopmesh", cmp.Or(r.Sharing.Strategy, strategy.Single), given, nn.Program)
	}
	if kind := task.Named(r.Task); kind != nil && kind.Pairs && !d.Links {
		return fmt.Errorf("{strategy} %s learns no links, and the task is %s: choose one of %s", d.Name, kind.Name, strings.Join(s.names(func(d *Descriptor) bool { return d.Links }), ", "))
	}
	if r.Embeddings > 0 && !d.Embeddings {
		return fmt.Errorf("{strategy} %s learns no rows of vertices, as {train.embeddings} asks for: choose one of %s", d.Name, strings.Join(s.names(func(d *Descriptor) bool { return d.Embeddings }), ", "))
	}
	if d.Classes && r.Task != "" {
		return fmt.Errorf("{strategy} %s learns one class of each vertex, and the task is %s: choose one of %s", d.Name, r.Task, strings.Join(s.names(func(d *Descriptor) bool { return !d.Classes && !d.Elsewhere }), ", "))
	}
	if d.Check != nil {
		return d.Check(r, model, about)
	}
	return nil
}

// names returns the names of those that some are.
func (s Strategies) names(are func(*Descriptor) bool) (all []string) {
	for i := range s {
		if are(&s[i]) {
			all = append(all, s[i].Name)
		}
	}
	return all
}

// Declared implements recipe.Rules.
func (s Strategies) Declared() (all strategy.Declarations) {
	for _, d := range s {
		all = append(all, d.Declaration)
	}
	return all
}

// CheckSweep implements recipe.Rules.
func (s Strategies) CheckSweep(r *recipe.Recipe) error {
	if d := s.Of(r.Sharing.Strategy); d.CheckSweep != nil {
		return d.CheckSweep(r)
	}
	return nil
}

// PartOf returns the part that a strategy has in a schedule by a dealer; nil: it has none, also if
// the dealer is another strategy's, that has.
func (s Strategies) PartOf(name string, d deal.Dealer) []byte {
	if s.Of(name).Describe == nil {
		return nil
	}
	return deal.PartOf(d)
}

// Follow has a dealer of a strategy follow a part of a schedule.
func (s Strategies) Follow(name string, d deal.Dealer, part []byte) error {
	if s.Of(name).Describe != nil {
		return deal.Follow(d, part)
	}
	if len(part) > 0 {
		return fmt.Errorf("the schedule says more of %s than there is to say", name)
	}
	return nil
}

// Choices returns the names of all, among which users choose.
func (s Strategies) Choices() (all []string) {
	for _, d := range s {
		all = append(all, d.Name)
	}
	return all
}

// Names returns the names of those by which several nodes share a run.
func (s Strategies) Names() (all []string) {
	for _, d := range s {
		if d.Deal != nil {
			all = append(all, d.Name)
		}
	}
	return all
}
