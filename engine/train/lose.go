package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// lose takes a learner of a sweep that has diverged out of the run, and returns what ends
// the run: any other error, and that none is left that has not diverged. All nodes come to
// the same, since all find out in the same step.
func (t *trainer) lose(l *learner, err error) error {
	d, diverged := errors.AsType[*Diverged](err)
	if !diverged || !t.sweeps() {
		return err
	}
	l.at.Diverged = d
	t.log.Warn("a model of the sweep has diverged; the others go on", "model", l.index, "err", err)
	l.tellLost()
	if err := t.allDiverged(); err != nil {
		return err
	}
	// Its epoch is not told of: what it took of all nodes' work is told with another's.
	if next := t.lead(); !next.done() {
		next.at.Under.took(&l.at.Under)
		next.end.took(&l.end)
		if l.end.Eval != nil {
			next.end.Sent.Add(l.end.Eval.Sent)
		}
	}
	return nil
}

// loseUnsound takes those out of a run that is interrupted whose next step would say that
// they have diverged, so that what the others have learnt is kept.
func (t *trainer) loseUnsound(ctx context.Context) error {
	for _, l := range t.learners {
		l.local.back(l)
		if l.done() {
			continue
		}
		if err := l.check(ctx); err != nil {
			if err := t.lose(l, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellLost tells of a learner that has diverged.
func (t *learner) tellLost() {
	if t.at.Diverged != nil && t.options.Lost != nil {
		t.options.Lost(t.index, t.at.Diverged.Error())
	}
}

// allDiverged is how a sweep ends of which every model has diverged.
func (t *trainer) allDiverged() error {
	for _, l := range t.learners {
		if l.at.Diverged == nil {
			return nil
		}
	}
	return fmt.Errorf("all %d models of the sweep have diverged: %w", len(t.learners), t.learners[0].at.Diverged)
}

// called is how a sentence calls the model of a sweep; "" where there is one.
func (t *learner) called() string {
	if !t.sweeps() {
		return ""
	}
	params := t.trainer.recipe.Sweep[t.index].Params
	var all []string
	for _, key := range slices.Sorted(maps.Keys(params)) {
		all = append(all, key+"="+params[key])
	}
	if len(all) == 0 {
		return fmt.Sprintf("model %d", t.index)
	}
	return fmt.Sprintf("model %d (%s)", t.index, strings.Join(all, ", "))
}
