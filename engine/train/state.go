package train

import "github.com/hopmesh/hopmesh/engine/strategy"

// state is where a run stands beside its weights: what a checkpoint must hold so
// that what follows is the same as if nothing had happened.
type state struct {
	// Epoch is the one under way, from 1, and Step how many of its steps are done;
	// if all are, it is yet to be evaluated. The run is done when Epoch is above
	// the recipe's epochs, or Early or Diverged is set.
	Epoch int  `json:"epoch"`
	Step  int  `json:"step"`
	Early bool `json:"early"`
	// Diverged is how a model of a sweep ended that did: the others go on without it.
	Diverged *Diverged `json:"diverged,omitempty"`
	// Losses is the sum of the losses of all rows of this epoch's steps.
	Losses float64 `json:"losses"`
	// Under is what is known of the epoch under way.
	Under Epoch `json:"under"`
	// Best is the epoch of the best weights; nil until one was evaluated.
	Best *Epoch `json:"best,omitempty"`
	// Waited counts the evaluations since the best, Stayed those since the best or
	// since a plateau brought the rate down, as it did Falls times.
	Waited int `json:"waited"`
	Stayed int `json:"stayed"`
	Falls  int `json:"falls"`
	// Last is the last epoch that is done.
	Last Epoch `json:"last"`
	// Super is the super-epoch of grappa, where plateaus end them, and Turned the last epoch
	// of the one before.
	Super  int `json:"super,omitempty"`
	Turned int `json:"turned,omitempty"`
	// Halo is how many rows of halo a group of grappa has at most, where memory bounds them.
	Halo int `json:"halo,omitempty"`
	// Ways are those of a pipeline whose nodes chose them; 0: nobody did.
	Ways int `json:"ways,omitempty"`
	// Tuning is what the dealer has found out.
	Tuning strategy.Tuning `json:"tuning,omitzero"`
}

// judge takes an evaluation into account and says whether it is the best so far.
func (s *state) judge(e *Epoch, r *Recipe) bool {
	if s.Best == nil || e.Eval.better(s.Best.Eval, r.Metric) {
		best := *e
		s.Best = &best
		s.Waited, s.Stayed = 0, 0
		return true
	}
	s.Waited++
	s.Stayed++
	if r.Schedule.Kind == Plateau && s.Stayed >= r.Schedule.Every && e.Epoch > r.Schedule.Warmup {
		s.Falls++
		s.Stayed = 0
	}
	s.Early = r.Patience > 0 && s.Waited >= r.Patience
	return false
}

// done says whether there is nothing left to train.
func (s *state) done(r *Recipe) bool {
	return s.Early || s.Diverged != nil || s.Epoch > r.Epochs
}
