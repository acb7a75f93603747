package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// aSweep asks for four models.
func aSweep(epochs int) api.TrainRequest {
	return api.TrainRequest{Dataset: "g", Strategy: "single", Epochs: &epochs, Sweep: []api.Sweep{
		{Key: "lr", Values: []string{"0.10", "0.01"}}, {Key: "hidden", Values: []string{"16", "8"}},
	}}
}

// A sweep runs to its end though its node is stopped in between, and all nodes show it.
func TestSweepRunsToItsEnd(t *testing.T) {
	inSchool(t, 2, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		s.Stops = []int{0, 2, 5, 0}
		id, err := c.Nodes[1].API().StartJob(t.Context(), aSweep(8))
		if err != nil {
			t.Fatal(err)
		}
		waitState(c, c.Nodes[0], id, "running")
		var told []string
		c.Wait("some epochs are known", time.Minute, func() bool { return len(jobOn(c.Nodes[0], id).History) >= 3 })
		middle := jobOn(c.Nodes[0], id)
		if middle.Epoch < 3 || middle.Best == nil || middle.Best.Model == nil || len(middle.Models) != 4 || len(middle.Models[1].History) != 2 {
			t.Errorf("in between it is %+v", middle)
		}
		runner := named(c, middle.Nodes[0])
		if err := runner.Stop(); err != nil {
			t.Fatal(err)
		}
		runner.Start()
		runner.WaitReady()
		end, err := c.Others(runner)[0].API().WatchJob(t.Context(), id, func(e api.JobEvent) {
			if e.Epoch != nil && e.Epoch.Rows.Local != 400 {
				t.Errorf("epoch %d of model %d is told with %d rows", e.Epoch.Epoch, e.Epoch.Model, e.Epoch.Rows.Local)
			}
			if e.Epoch != nil {
				told = append(told, fmt.Sprint(e.Epoch.Epoch))
			}
			if e.State != nil && e.State.Models != 4 {
				t.Errorf("told of %+v", e.State)
			}
		})
		if err != nil || end.State != "done" {
			t.Fatalf("%+v, %v", end, err)
		}
		if !slices.IsSorted(told) || len(slices.Compact(slices.Clone(told))) != len(told) || told[len(told)-1] != "8" {
			t.Errorf("told of epochs %v", told)
		}
		for _, n := range c.Nodes {
			j := waitState(c, n, id, "done")
			if j.Model != "gcn" || j.Epoch != 8 || len(j.Models) != 4 {
				t.Fatalf("%s shows %+v", n.Name, j)
			}
			for i, epochs := range []int{8, 2, 5, 8} {
				m := j.Models[i]
				if len(m.History) != epochs || m.Best == nil || m.Best.Epoch != min(3, epochs) {
					t.Errorf("%s: model %d has %d epochs, the best %+v", n.Name, i, len(m.History), m.Best)
				}
				for at, e := range m.History {
					if e.Epoch != at+1 || e.Model != i {
						t.Errorf("%s: epoch %d of model %d is %+v", n.Name, at+1, i, e)
					}
				}
				if want := []string{"0.10 16", "0.10 8", "0.01 16", "0.01 8"}[i]; m.Params["lr"]+" "+m.Params["hidden"] != want {
					t.Errorf("model %d has %v", i, m.Params)
				}
			}
			if j.Best == nil || j.Best.Epoch != 3 || j.Best.Model == nil || *j.Best.Model != 3 || len(j.History) != 8 || j.History[0].Model != 3 {
				t.Errorf("%s: the best is %+v, of which there are %d epochs", n.Name, j.Best, len(j.History))
			}
			for i, e := range j.History {
				trained := float64(0)
				for _, m := range j.Models {
					if len(m.History) > i {
						trained++
					}
				}
				if e.Seconds != trained || e.Rows.Local != 400 || j.Models[3].History[i].Rows.Local != 0 || j.Models[3].History[i].Seconds != 1 {
					t.Errorf("%s: epoch %d took %v s for %v models, and %d rows", n.Name, i+1, e.Seconds, trained, e.Rows.Local)
				}
			}
			list, err := n.API().Jobs(t.Context())
			if err != nil || len(list) != 1 || list[0].Models != 4 || list[0].Best == nil || *list[0].Best.Model != 3 {
				t.Errorf("%s lists %+v, %v", n.Name, list, err)
			}
		}
	})
}

// Which models have diverged is shown while the job runs, after a restart and when it has
// ended, and told whoever watches, once.
func TestModelsThatDivergeAreShown(t *testing.T) {
	inSchool(t, 2, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		s.Lost = []int{0, 3, 0, 6}
		id, err := c.Nodes[1].API().StartJob(t.Context(), aSweep(8))
		if err != nil {
			t.Fatal(err)
		}
		shows := func(n *nodetest.Instance, when string, want ...string) {
			t.Helper()
			for i, m := range jobOn(n, id).Models {
				if m.Diverged != want[i] {
					t.Errorf("%s, %s says of model %d %q", when, n.Name, i, m.Diverged)
				}
			}
		}
		const second, last = "model 1 diverged in epoch 3", "model 3 diverged in epoch 6"
		for _, n := range c.Nodes {
			c.Wait("it says of the second", time.Minute, func() bool { m := jobOn(n, id).Models; return len(m) == 4 && m[1].Diverged != "" })
			shows(n, "while it runs", "", second, "", "")
		}
		runner := named(c, jobOn(c.Nodes[0], id).Nodes[0])
		if err := runner.Stop(); err != nil {
			t.Fatal(err)
		}
		runner.Start()
		runner.WaitReady()
		var notes []string
		end, err := c.Others(runner)[0].API().WatchJob(t.Context(), id, func(e api.JobEvent) {
			if strings.Contains(e.Note, "diverged") {
				notes = append(notes, e.Note)
			}
		})
		if err != nil || end.State != "done" || !slices.Equal(notes, []string{second, last}) {
			t.Errorf("%s, %v, told %q", end.State, err, notes)
		}
		for _, n := range c.Nodes {
			waitState(c, n, id, "done")
			shows(n, "in the end", "", second, "", last)
		}
	})
}

// What can't be done with a sweep, or without one, is said before anything is fetched.
func TestWhatASweepRefuses(t *testing.T) {
	inSchool(t, 1, time.Second, func(t *testing.T, c *nodetest.Cluster, _ *school.School) {
		n, ctx := c.Nodes[0], t.Context()
		many := aSweep(9_999)
		many.Sweep = append(many.Sweep, api.Sweep{Key: "dropout", Values: []string{"0", "0.5"}})
		for says, r := range map[string]api.TrainRequest{
			"9999 epochs of 8 models are too many":                 many,
			"--sweep can't take leap.mode":                         {Dataset: "g", Sweep: []api.Sweep{{Key: "leap.mode", Values: []string{"stay", "migrate"}}}},
			"--sweep can't take \"x\"":                             {Dataset: "g", Sweep: []api.Sweep{{Key: "x", Values: []string{"1", "2"}}}},
			"model 1 of the sweep (layers=0): --layers is 0":       {Dataset: "g", Sweep: []api.Sweep{{Key: "layers", Values: []string{"1", "0"}}}},
			"model 1 of the sweep (lr=1.0) is the same as model 0": {Dataset: "g", Sweep: []api.Sweep{{Key: "lr", Values: []string{"1", "1.0"}}}},
		} {
			_, err := n.API().StartJob(ctx, r)
			refused(t, says, err, says)
		}
		id, err := n.API().StartJob(ctx, aSweep(3))
		if err != nil {
			t.Fatal(err)
		}
		waitState(c, n, id, "running")
		if err := n.API().StopJob(ctx, id); err != nil {
			t.Fatal(err)
		}
		rate := 0.5
		refused(t, "another rate", n.API().ResumeJob(ctx, id, api.ResumeRequest{Rate: &rate}), "job "+id+" is a sweep of 4 models", "resume it without --lr")
		if err := n.API().ResumeJob(ctx, id, api.ResumeRequest{}); err != nil {
			t.Error(err)
		}
		waitState(c, n, id, "done")
		refused(t, "a model too many", n.API().ExportJob(ctx, id, api.ExportRequest{Index: new(4)}, nil), "--model-index is 4, and job "+id+" has the models 0 to 3")
		refused(t, "a model too few", n.API().Predict(ctx, id, api.PredictRequest{Format: ".npy", Index: new(-1)}, nil), "--model-index is -1")
		alone := started(t, n, 1)
		waitState(c, n, alone, "done")
		refused(t, "no sweep", n.API().ExportJob(ctx, alone, api.ExportRequest{Index: new(0)}, nil), "job "+alone+" trains one model and no sweep")
		if err := n.API().ExportJob(ctx, id, api.ExportRequest{Index: new(3)}, nil); err == nil || !strings.Contains(err.Error(), "is damaged") { // a school's is no model
			t.Errorf("the last model: %v", err)
		}
	})
}
