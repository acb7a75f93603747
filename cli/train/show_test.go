package train

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/node/api"
)

// The report on nodes that share the work fits on a terminal.
func TestSharedEpochsAreNotTooWide(t *testing.T) {
	for _, strategy := range []string{"leap", "p3"} {
		var out strings.Builder
		j := clitest.SharedJob()
		j.History = j.History[1:]
		for i := range j.History {
			j.History[i].Epoch = 9999
			if j.History[i].Strategy = strategy; strategy == "p3" {
				j.History[i].Bytes = api.JobBytes{Topology: 1_000_000, Gradient: 1_000_000, Activation: 1_000_000_000, Shard: 1_000_000, Control: 1_000_000}
				j.History[i].Rows.Kept = 0 // no rows travel
			}
		}
		if err := errors.Join(printJob(&out, j), printSharedEpochs(&out, j.History)); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(line) - 1; n > 100 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

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
		j := clitest.Done()
		c.spoil(&j)
		if got := distributed(j); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What a strategy reports by name has a column of its own.
func TestSharingHasColumnsOfFigures(t *testing.T) {
	first, second := clitest.SharedEpoch(1), clitest.SharedEpoch(2)
	second.Figures = []api.JobFigure{{Name: "averagings", Value: 12}, {Name: "steps apart", Value: 2.5}}
	rows := sharingRows([]api.JobEpoch{first, second})
	at := slices.Index(rows[0], "AVERAGINGS")
	if at < 0 || !slices.Equal(rows[0][at:at+2], []string{"AVERAGINGS", "STEPS APART"}) || !slices.Equal(rows[1][at:at+2], []string{"", ""}) || !slices.Equal(rows[2][at:at+2], []string{"12", "2.5"}) {
		t.Errorf("%q", rows)
	}
}

// What no strategy of a job did has no column.
func TestSharingHasColumnsOfWhatWasDone(t *testing.T) {
	for _, c := range []struct{ slots, behind, super int }{{}, {slots: 2}, {behind: 3}, {2, 3, 0}, {super: 4}} {
		first, second := clitest.SharedEpoch(1), clitest.SharedEpoch(2)
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

// The metrics of a task stand below the best epoch, of each part of the split; an accuracy does
// not stand there twice.
func TestMetricsOfTheBestEpoch(t *testing.T) {
	for name, c := range map[string]struct {
		best api.JobBest
		want string
	}{
		"numbers": {api.JobBest{Epoch: 2, Metric: "rmse", Metrics: &api.JobMetrics{
			Train: map[string]float64{"rmse": 0.5, "r2": 0.25}, Val: map[string]float64{"rmse": 1.5, "mae": 1, "r2": -2},
		}}, "rmse 1.5 on validation\nMetrics  r2 0.25, rmse 0.5 on training\n mae 1, r2 -2, rmse 1.5 on validation\n"},
		"classes": {api.JobBest{Epoch: 2, ValAccuracy: new(0.5), Metrics: &api.JobMetrics{Val: map[string]float64{"accuracy": 0.5}}}, "50.0 % on validation\n"},
		"both":    {api.JobBest{Epoch: 2, ValAccuracy: new(0.5), Metrics: &api.JobMetrics{Val: map[string]float64{"accuracy": 0.5, "macro_f1": 0.25}}}, "50.0 % on validation\nMetrics accuracy 0.5, macro_f1 0.25 on validation\n"},
	} {
		j := clitest.Done()
		j.Best = &c.best
		var out strings.Builder
		if err := printJob(&out, j); err != nil {
			t.Fatal(err)
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		if got := squeeze(out.String()); !strings.Contains(got, squeeze(c.want)+" Time") {
			t.Errorf("%s: %s", name, out.String())
		}
	}
}
