package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

func TestWhatCountsAsShared(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(j *api.Job)
		want  bool
	}{
		"one node":         {func(*api.Job) {}, false},
		"two nodes":        {func(j *api.Job) { j.Nodes = []string{"alpha", "beta"} }, true},
		"rows of another":  {func(j *api.Job) { j.History[0].Rows.Remote = 1 }, true},
		"bytes to another": {func(j *api.Job) { j.History[1].Bytes.Control = 1 }, true},
	} {
		j := done()
		c.spoil(&j)
		if got := shared(j); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestStrategyThatWasUsed(t *testing.T) {
	j := sharedJob()
	for asked, want := range map[string]string{"leap": "leap", "auto": "auto, which was leap in epoch 3"} {
		j.Strategy = asked
		if got := strategyOf(j); got != want {
			t.Errorf("%s: %s", asked, got)
		}
	}
}

// Only whole epochs have a line above the bar.
func TestNoLinesWithinEpochs(t *testing.T) {
	var out strings.Builder
	v := newView(&out, false)
	now := then
	v.now, v.terminal = func() time.Time { return now }, true
	state, e := sharedJobs()[1], aSharedEpoch(4)
	v.tell(api.JobEvent{State: &state})
	v.tell(api.JobEvent{Epoch: &e})
	now = now.Add(time.Minute)
	v.tell(api.JobEvent{Progress: &api.JobProgress{Epoch: 5, Step: 3, Steps: 9}})
	if strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%q", out.String())
	}
}
