package train_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// What the next steps read is on its way while this one is added up: a step takes as
// long as that takes, which is one question for so small a model. By centric, the neighbours of a
// step's seed vertices take two.
func TestRowsComeWhileStepsAreAddedUp(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, c := range []struct {
		sharing   strategy.Settings
		questions int // of a step
	}{{traintest.Ways()["leap"], 1}, {strategy.Settings{Strategy: "centric"}, 2}} {
		synctest.Test(t, func(t *testing.T) {
			r := traintest.Small("sage")
			r.Sharing, r.Batch = c.sharing, 60
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			all := m.Start(t, r, shards, train.Options{Threads: 2})
			const delay = 50 * time.Millisecond
			m.Net.Delay = delay
			steps := all[0].Run.Batches.Steps
			start := time.Now()
			err := m.Each(func(node int) error { return all[node].Run.Steps(t.Context()) })
			if took := time.Since(start); err != nil || took < time.Duration(c.questions*steps)*delay || took > time.Duration(c.questions*steps+2)*delay {
				t.Errorf("%s: %d steps take %v, %v", c.sharing.Strategy, steps, took, err)
			}
			if e := all[0].At.Under; e.Rows.Remote == 0 || e.Phases.Gather < float64(steps)*delay.Seconds()/2 {
				t.Errorf("%s: nothing had to come: %+v", c.sharing.Strategy, e)
			}
		})
	}
}

// The first layer's sums of steps under way come while those before are computed: of the
// four questions that one step of p3 asks after the other, a step waits for three.
func TestSumsComeWhileStepsAreUnderWay(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for k, questions := range map[int]int{1: 4, 2: 3, 4: 3} {
		synctest.Test(t, func(t *testing.T) {
			r := traintest.Small("sage")
			r.Sharing, r.Batch = traintest.Inflight(k, false), 60
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			all := m.Start(t, r, shards, traintest.Columnwise(train.Options{Threads: 2}))
			const delay = 50 * time.Millisecond
			m.Net.Delay = delay
			steps := all[0].Run.Batches.Steps
			start := time.Now()
			err := m.Each(func(node int) error { return all[node].Run.Steps(t.Context()) })
			if took := time.Since(start); err != nil || took < time.Duration(questions*steps)*delay || took > time.Duration(questions*steps+1)*delay {
				t.Errorf("%d under way: %d steps take %v, %v", k, steps, took, err)
			}
		})
	}
}
