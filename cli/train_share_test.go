package cli

import (
	"slices"
	"strconv"
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

// What no strategy of a job did has no column.
func TestSharingHasColumnsOfWhatWasDone(t *testing.T) {
	for _, c := range []struct{ slots, behind, super int }{{}, {slots: 2}, {behind: 3}, {2, 3, 0}, {super: 4}} {
		first, second := aSharedEpoch(1), aSharedEpoch(2)
		second.Slots, second.Behind, second.Super = c.slots, c.behind, c.super
		if c.super > 0 {
			second.Seen = 0.375
		}
		rows := sharingRows([]api.JobEpoch{first, second})
		if at := slices.Index(rows[0], "EDGES SEEN"); (at >= 0) != (c.super > 0) || at >= 0 && (rows[1][at] != "" || rows[2][at] != "37.5%") {
			t.Errorf("%+v: %q", c, rows)
		}
		for head, n := range map[string]int{"SLOTS": c.slots, "BEHIND": c.behind, "SUPER-EPOCH": c.super} {
			at := slices.Index(rows[0], head)
			switch {
			case (at >= 0) != (n > 0) || len(rows[1]) != len(rows[0]) || len(rows[2]) != len(rows[0]):
				t.Errorf("%+v: %q", c, rows)
			case at >= 0 && (rows[1][at] != "" || rows[2][at] != strconv.Itoa(n)):
				t.Errorf("%+v: %q", c, rows)
			}
		}
	}
}
