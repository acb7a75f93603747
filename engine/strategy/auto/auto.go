package auto

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
)

// A Counter finds the sizes of the blocks of roots, as sample.Counter does.
type Counter interface {
	Count(ctx context.Context, to []sample.Size, epoch, step uint64, roots []uint32) ([]sample.Size, error)
	// Vertices returns all vertices of the blocks counted last.
	Vertices() []uint32
}

// Rows counts rows of features, as gather.Source does.
type Rows interface {
	// Count is gather.Source's Gather without fetching.
	Count(r *gather.Rows, sets [][]uint32, o gather.Options) error
	// RowBytes returns the average size of a local row on the wire; 0, if there are
	// none.
	RowBytes() float64
}

// A Dealing is a strategy that may be chosen: it trains on the mini-batches of the job,
// and computes the same as one node.
type Dealing struct {
	Name string
	// Deal returns its dealer, or an error if it can't share the job.
	Deal func(peer.Layout, strategy.Settings) (deal.Dealer, error)
	// Asking returns how it requests rows; nil: in the usual way.
	Asking func(*strategy.Settings) gather.Options
	// Keeps are how many rows of other nodes stay here once they have come by this
	// strategy, of how many.
	Keeps, Far int
}

// A Job is what a choice is made for. All nodes have the same, except local data.
type Job struct {
	Exchange   *exchange.Exchange
	Work       peer.Work
	Layout     peer.Layout
	Settings   strategy.Settings
	Strategies []Dealing

	// Batch returns the roots of a step of an epoch, valid until the next call.
	Batch  func(step int) []uint32
	Epoch  int
	Steps  int  // of each epoch
	Epochs int  // remaining
	Once   bool // all of these have the same single batch, which is prepared once
	Model  Model

	Counter Counter
	Rows    Rows
	Hands   int  // local sampling threads
	Threads int  // local compute threads
	Room    bool // for p3's columns, here
	Edges   bool // each node has all of them

	// Tally counts the cost of choosing, including neighbours that Counter requests.
	Tally *peer.Tally
}

// A Model is the size of the computation, in numbers.
type Model struct {
	Weights int
	// Sum is how many columns the sum that begins the first layer has (nn.Front), and
	// Front how many weights precede it. 0: there is no such sum.
	Sum, Front int
	Sources    bool    // the sum has a row for each source of the outermost block; else for each target
	Features   float64 // of all vertices
}

// A Candidate is a strategy that could be used.
type Candidate struct {
	Name   string
	Dealer deal.Dealer
	asking gather.Options

	keeps, far int
}

// A Choice is how a job is shared. One goroutine uses it.
type Choice struct {
	job        *Job
	facts      facts
	candidates []Candidate
	tried      []tried // of the candidates; nil: nothing was counted
	rates      Rates
	at         int
	why        string
}

// Chosen returns the strategy in use.
func (c *Choice) Chosen() Candidate { return c.candidates[c.at] }

// Why returns a sentence on why the strategy in use was chosen.
func (c *Choice) Why() string { return c.why }

// Use sets the strategy in use to one that the nodes have agreed on, with the reason.
func (c *Choice) Use(name, why string) error {
	at := slices.IndexFunc(c.candidates, func(of Candidate) bool { return of.Name == name })
	if at < 0 {
		return fmt.Errorf("the schedule has the nodes share the job by %s, which this one has not considered: run the same version of hopmesh on all nodes of the job", name)
	}
	c.at, c.why = at, why
	return nil
}

// Consider returns the strategies that can share a job, of which the first is in use until one
// is chosen. It looks at nothing.
func Consider(j *Job) (*Choice, error) {
	c := &Choice{job: j}
	var err error
	if c.candidates, err = j.candidates(); err != nil {
		return nil, fmt.Errorf("choose how the nodes share the job: %w", err)
	}
	return c, nil
}

// Choose chooses one by formula. All nodes call it at the same point of their run, when all have
// met and before anything is offered for an epoch, and choose the same. Where weights must be the
// same bits whoever computes them, nothing is timed, so that the choice is the same again, too.
func (c *Choice) Choose(ctx context.Context) error {
	if err := c.choose(ctx); err != nil {
		return fmt.Errorf("choose how the nodes share the job: %w", err)
	}
	return nil
}

func (c *Choice) choose(ctx context.Context) error {
	j := c.job
	var p probe
	timed := !j.Settings.Deterministic
	if timed {
		p = j.probe()
	}
	all, sample, err := j.look(ctx, c.candidates)
	if err != nil {
		return err
	}
	c.rates = assumed(j.Model.Weights)
	if timed {
		mine := Rates{Sample: sample, Hands: float64(max(1, j.Hands)), Compute: guess(j.Model.Weights, j.Threads)}
		if c.rates, err = p.measure(ctx, mine); err != nil {
			return err
		}
	}
	c.settle(j, all)
	costs := c.costs()
	c.at = choose(costs)
	c.why = why(&c.facts, costs, c.at, &c.rates)
	return nil
}

// far is how much longer than the fastest a strategy may take by formula and still be tried.
const far = 4

// tries returns the candidates that are worth a trial, the one in use first and then as fast as
// they are by formula, if there is one; nil: there is nothing to try. A job that begins with p3
// stays with it and no other changes to it, since all columns of features would have to be
// fetched first.
func (c *Choice) tries() (all []Candidate) {
	if c.Chosen().Name == p3.Name {
		return nil
	}
	order := []int{c.at}
	var costs []cost
	least := math.Inf(1)
	if c.tried != nil {
		costs = c.costs()
		for i := range costs {
			least = min(least, costs[i].seconds)
		}
	}
	for i := range c.candidates {
		if i != c.at && c.candidates[i].Name != p3.Name && (costs == nil || costs[i].seconds <= far*least) {
			order = append(order, i)
		}
	}
	if costs != nil {
		slices.SortStableFunc(order[1:], func(a, b int) int { return cmp.Compare(costs[a].seconds, costs[b].seconds) })
	}
	if len(order) < 2 {
		return nil
	}
	for _, i := range order[:min(len(order), mostTries)] {
		all = append(all, c.candidates[i])
	}
	return all
}

// candidates returns the strategies that can share the job. Where weights must be the same bits on any nodes, p3 is left
// out, since its sums differ from those of the others.
func (j *Job) candidates() ([]Candidate, error) {
	var all []Candidate
	var refused error
	for _, s := range j.Strategies {
		if s.Name == p3.Name && (j.Model.Sum == 0 || j.Settings.Deterministic) {
			continue
		}
		d, err := s.Deal(j.Layout, j.Settings)
		if err != nil {
			refused = errors.Join(refused, fmt.Errorf("%s: %w", s.Name, err))
			continue
		}
		c := Candidate{Name: s.Name, Dealer: d, keeps: s.Keeps, far: s.Far}
		if s.Asking != nil {
			c.asking = s.Asking(&j.Settings)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.Join(errors.New("no strategy can share it: choose other settings, or {strategy} single"), refused)
	}
	return all, nil
}

// settle records the counts of all nodes.
func (c *Choice) settle(j *Job, all []census) {
	f, front := &c.facts, p3.Of(&j.Settings)
	*f = facts{
		nodes: len(j.Work.Nodes), steps: j.Steps, epochs: j.Epochs, once: j.Once,
		weights: numberBytes * float64(j.Model.Weights), sum: float64(j.Model.Sum), front: numberBytes * float64(j.Model.Front),
		features: numberBytes * j.Model.Features, resample: j.Edges && !front.Pushed(), sources: j.Model.Sources,
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
		if candidate.Name == p3.Name && !room {
			continue
		}
		t := tried{name: candidate.Name, looks: int(all[0].Steps)}
		for node := range all {
			t.loads = append(t.loads, all[node].Loads[i])
		}
		kept, c.tried = append(kept, candidate), append(c.tried, t)
	}
	c.candidates = kept
}

// fills reports whether rows of other nodes stay on some node once they have come, by the strategy
// in use.
func (c *Choice) fills() bool {
	return c.tried != nil && slices.ContainsFunc(c.tried[c.at].loads, func(l Load) bool { return l.Keeps > 0 })
}

// costs returns the costs of all candidates at the known rates.
func (c *Choice) costs() []cost {
	costs := make([]cost, len(c.tried))
	for i := range c.tried {
		costs[i] = c.facts.predict(&c.tried[i], &c.rates)
	}
	return costs
}

// guess estimates the time of a row, forward and backward, before any was computed: as
// if it went through all weights, at a pace that any current machine comes near.
func guess(weights, threads int) float64 {
	const perWeight, pace = 6, 1e10
	return perWeight * float64(weights) / pace / float64(max(1, threads))
}

// assumed are the rates by which a choice is made where nothing may be timed: of common machines
// at 1 Gbit/s.
func assumed(weights int) Rates {
	return Rates{Bandwidth: 1.25e8, RoundTrip: 2e-4, Compute: guess(weights, 1), Sample: 1e-7, Hands: 1}
}
