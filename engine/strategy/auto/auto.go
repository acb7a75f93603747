package auto

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A Sampler draws the blocks of roots: sample.Sampler does.
type Sampler interface {
	Sample(ctx context.Context, b *sample.Batch, epoch, step uint64, roots []uint32) error
}

// Rows knows of rows of features: gather.Source does.
type Rows interface {
	// Count is gather.Source's Gather, but that nothing is brought.
	Count(r *gather.Rows, sets [][]uint32, o gather.Options) error
	// RowBytes is what a row of those that are here takes on its way, on average; 0, if
	// there are none.
	RowBytes() float64
}

// A Job is what a choice is made for. All nodes have the same, but for what is here.
type Job struct {
	Exchange   *exchange.Exchange
	Work       strategy.Work
	Layout     strategy.Layout
	Settings   strategy.Settings
	Strategies []strategy.Strategy

	// Batch returns the roots of a step of an epoch, until the next call.
	Batch  func(step int) []uint32
	Epoch  int
	Steps  int  // of each epoch
	Epochs int  // that are to come
	Once   bool // all of these have the same one batch, which is prepared once
	Model  Model

	Sampler Sampler
	Rows    Rows
	Hands   int  // that draw batches at once, here
	Threads int  // that compute, here
	Room    bool // for p3's columns, here
	Edges   bool // each node has all of them

	// Tally counts what choosing costs, neighbours that Sampler asks for included.
	Tally *strategy.Tally
}

// A Model is what is computed, in numbers.
type Model struct {
	Weights int
	// Sum is how many columns the sum has that begins the first layer (nn.Front), and
	// Front how many weights are in front of it. 0: there is no such sum.
	Sum, Front int
	Features   float64 // of all vertices
}

// A Candidate is a strategy that could be used.
type Candidate struct {
	Name   string
	Dealer strategy.Dealer
}

// A Choice is how a job is shared. One goroutine uses it.
type Choice struct {
	job        *Job
	facts      facts
	candidates []Candidate
	tried      []tried   // of the candidates
	found      []float64 // of each: how much longer it took than predicted when it was used last; 0: it was not
	cramped    []bool    // of each: some node has no room for it
	rates      Rates
	at         int
	why        string
	rest       int // epochs before it may change
}

// Chosen is the strategy in use, and Why a sentence on what speaks for it.
func (c *Choice) Chosen() Candidate { return c.candidates[c.at] }

// Why is a sentence on what speaks for the strategy in use.
func (c *Choice) Why() string { return c.why }

// Choose finds out how the job is shared. All nodes call it at the same place of their
// run, when all of them have met and before anything is offered for an epoch, and come to
// the same.
func Choose(ctx context.Context, j *Job) (*Choice, error) {
	c, err := j.choose(ctx)
	if err != nil {
		return nil, fmt.Errorf("choose how the nodes share the job: %w", err)
	}
	return c, nil
}

func (j *Job) choose(ctx context.Context) (*Choice, error) {
	c := &Choice{job: j}
	var err error
	if c.candidates, err = j.candidates(); err != nil {
		return nil, err
	}
	p := j.probe()
	all, sample, err := j.look(ctx, c.candidates)
	if err != nil {
		return nil, err
	}
	mine := Rates{Sample: sample, Hands: float64(max(1, j.Hands)), Compute: guess(j.Model.Weights, j.Threads)}
	if c.rates, err = p.measure(ctx, mine); err != nil {
		return nil, err
	}
	c.settle(j, all)
	costs := c.costs()
	c.at = choose(costs)
	c.why = why(&c.facts, costs, c.at, &c.rates)
	return c, nil
}

// candidates are the strategies that can share the job, and train what one node would:
// grappa doesn't. Where weights are to be the same
// bits on any nodes, p3 is none: its sums are others than those of all the rest, and what
// nodes are fast in must not show in the weights.
func (j *Job) candidates() ([]Candidate, error) {
	var all []Candidate
	var refused error
	for _, s := range j.Strategies {
		if s.Name() == strategy.Grappa || s.Name() == strategy.P3 && (j.Model.Sum == 0 || j.Settings.Deterministic) {
			continue
		}
		if strategy.Piped(s.Name()) {
			continue // they train on other batches than the job's
		}
		d, err := s.New(j.Layout, j.Settings)
		if err != nil {
			refused = errors.Join(refused, fmt.Errorf("%s: %w", s.Name(), err))
			continue
		}
		all = append(all, Candidate{s.Name(), d})
	}
	if len(all) == 0 {
		return nil, errors.Join(errors.New("no strategy can share it: choose other settings, or --strategy single"), refused)
	}
	return all, nil
}

// settle keeps what all nodes have told.
func (c *Choice) settle(j *Job, all []census) {
	f := &c.facts
	*f = facts{
		nodes: len(j.Work.Nodes), steps: j.Steps, epochs: j.Epochs, once: j.Once,
		weights: numberBytes * float64(j.Model.Weights), sum: float64(j.Model.Sum), front: numberBytes * float64(j.Model.Front),
		features: numberBytes * j.Model.Features, resample: j.Edges && !j.Settings.P3.Pushed(),
	}
	room, rows := true, 0.0
	for i := range all {
		room = room && all[i].Room
		if all[i].Row > 0 {
			f.row += all[i].Row + idBytes
			rows++
		}
	}
	if rows > 0 {
		f.row /= rows
	}
	var kept []Candidate
	for i, candidate := range c.candidates {
		if candidate.Name == strategy.P3 && !room {
			continue
		}
		t := tried{name: candidate.Name, looks: int(all[0].Steps)}
		for node := range all {
			t.loads = append(t.loads, all[node].Loads[i])
		}
		kept, c.tried = append(kept, candidate), append(c.tried, t)
	}
	c.candidates, c.found, c.cramped = kept, make([]float64, len(kept)), make([]bool, len(kept))
}

// costs are what all candidates take at the rates that are known.
func (c *Choice) costs() []cost {
	costs := make([]cost, len(c.tried))
	for i := range c.tried {
		costs[i] = c.facts.predict(&c.tried[i], &c.rates)
	}
	return costs
}

// guess is about how long a row takes, forward and backward, before any was computed: as
// if it went through all weights, at a pace that any machine of today comes near.
func guess(weights, threads int) float64 {
	const perWeight, pace = 6, 1e10
	return perWeight * float64(weights) / pace / float64(max(1, threads))
}
