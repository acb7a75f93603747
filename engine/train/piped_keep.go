package train

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
)

// earlyPrefix is what the names of the weights with which a period began begin with in a
// checkpoint.
const earlyPrefix = "early."

// remembers says whether what is learnt next depends on weights of before.
func (t *learner) remembers() bool {
	s := &t.recipe.Sharing
	return t.piped != nil && s.Strategy == strategy.Pipe
}

// samePipeline says whether two settings come to the same weights as far as histories,
// and rows that ways see of each other, decide them: stages are only where layers are
// computed.
func samePipeline(a, b *strategy.Settings) bool {
	if !strategy.Piped(a.Strategy) && !strategy.Piped(b.Strategy) {
		return true
	}
	x, y := a.Pipe, b.Pipe
	x.Stages, y.Stages, x.Keep, y.Keep, x.Again, y.Again = 0, 0, false, false, false, false
	return x == y && a.Strategy == b.Strategy
}

// earlySections are what a checkpoint has of them.
func (t *learner) earlySections() []section {
	if !t.remembers() || t.piped.worker == nil || t.piped.worker.PeriodWeights().None() {
		return nil
	}
	return []section{{earlyPrefix, func(to []float32) []float32 {
		to = to[:t.model.Size()]
		t.device.Read32(to, t.piped.worker.PeriodWeights())
		return to
	}, t.model.Params()}}
}

// readEarly reads them from a checkpoint, if that has any.
func (t *learner) readEarly(c *checkpoint) ([]float32, error) {
	if !t.remembers() || !c.file.Has(earlyPrefix+t.model.Params()[0].Name) {
		return nil, nil
	}
	return c.row(earlyPrefix, t.model.Params(), t.model.Size())
}

// restful says whether a run can go on from here: not where nodes keep rows or gradients
// of the epochs before, which no checkpoint has, nor before stages have settled.
func (t *trainer) restful() bool {
	for _, l := range t.learners {
		if l.piped != nil && (!l.piped.settledAll() || !l.done() && !l.rests(l.at.Epoch-1+l.at.Step)) {
			return false
		}
	}
	return true
}

// rests says whether a run can go on from where so many epochs are done, as far as rows and
// gradients of the epochs before go.
func (t *learner) rests(done int) bool {
	s := &t.recipe.Sharing.Pipe
	if s.Chained() && done > 0 {
		return false
	}
	switch s.HaloOf() {
	case strategy.RowsPrevious:
		return done%pipe.Fresh == 0
	case strategy.RowsSkip:
		return done%(s.AgeOf()+1) == 0
	}
	return true
}

// saveFirst writes a checkpoint where there is none yet and a run can't go on from
// everywhere: so there is always one that it can go on from.
func (t *trainer) saveFirst() error {
	if t.saved.good || !t.keeps() || !slices.ContainsFunc(t.learners, func(l *learner) bool {
		s := &l.recipe.Sharing.Pipe
		return l.piped != nil && (s.Chained() || !slices.Contains([]string{strategy.RowsExact, strategy.RowsSampled}, s.HaloOf()))
	}) {
		return nil
	}
	return t.saveSoon()
}
