package node_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// refused fails the test unless the refusal says all of it.
func refused(t *testing.T, what string, err error, says ...string) {
	t.Helper()
	for _, says := range says {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v does not say %q", what, err, says)
		}
	}
}

// Nothing goes to make room: who wants room says what goes, and its files go too.
func TestJobsAreRemoved(t *testing.T) {
	inSchool(t, 2, time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		n, other := c.Nodes[0], c.Nodes[1]
		folders := func() (names []string) {
			for _, n := range c.Nodes {
				entries, err := os.ReadDir(filepath.Join(n.Options.DataDir, "jobs"))
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					names = append(names, e.Name())
				}
			}
			return names
		}
		for range 64 { // as many as the plan keeps
			waitState(c, n, started(t, n, 1), "done")
		}
		one := 1
		_, err := other.API().StartJob(t.Context(), api.TrainRequest{Dataset: "g", Epochs: &one})
		refused(t, "one too many", err, "there are 64 jobs", "`hopmesh train remove j1`")
		if got := folders(); len(got) != 64 || jobOn(n, "j1").State != "done" {
			t.Errorf("%d folders, j1 is %+v", len(got), jobOn(n, "j1"))
		}
		if err := other.API().RemoveJob(t.Context(), "j1"); err != nil {
			t.Fatal(err)
		}
		if err := other.API().RemoveJob(t.Context(), "j1"); status404(err) != 404 {
			t.Errorf("removed twice: %v", err)
		}
		c.Wait("its folder is gone", time.Minute, func() bool {
			return !slices.ContainsFunc(folders(), func(f string) bool { return strings.HasPrefix(f, "j1-") })
		})
		s.Pace = time.Minute
		id := started(t, n, 5)
		waitState(c, n, id, "running")
		refused(t, "a running job", n.API().RemoveJob(t.Context(), id), "job j65 is running: stop it first", "hopmesh train stop j65")
		refused(t, "a running job", n.API().ResumeJob(t.Context(), id, api.ResumeRequest{}), "job j65 is running already")
		c.Wait("the running job has a folder", time.Minute, func() bool { return len(folders()) == 64 })
		// A job's folder goes while another one runs, too.
		if err := n.API().RemoveJob(t.Context(), "j2"); err != nil {
			t.Fatal(err)
		}
		c.Wait("its folder is gone", time.Minute, func() bool { return len(folders()) == 63 })
	})
}

// A dataset is not taken from under models without a word, and is theirs again when
// it comes back.
func TestDatasetThatModelsNeed(t *testing.T) {
	inSchool(t, 1, time.Second, func(t *testing.T, c *nodetest.Cluster, _ *school.School) {
		n, ctx := c.Nodes[0], t.Context()
		waitState(c, n, started(t, n, 2), "done")
		id := started(t, n, 20)
		c.Wait("some epochs are known", time.Minute, func() bool { return len(jobOn(n, id).History) > 3 })
		refused(t, "a dataset that is worked on", n.API().RemoveDataset(ctx, "g", true), "job j2 needs dataset g: wait")
		if err := n.API().StopJob(ctx, id); err != nil {
			t.Fatal(err)
		}
		refused(t, "a dataset that is needed", n.API().RemoveDataset(ctx, "g", false),
			"job j1 needs dataset g to predict or to go on, as does another", "`hopmesh train remove j1`", "`hopmesh dataset remove g --force`")
		if err := n.API().RemoveDataset(ctx, "g", true); err != nil {
			t.Fatal(err)
		}
		refused(t, "resumed", n.API().ResumeJob(ctx, id, api.ResumeRequest{}), "the dataset g, on which job j2 was trained, is no longer in the mesh: import it again")
		other := tiny("g", 0)
		other.Seed++
		generated(t, n, other)
		refused(t, "resumed", n.API().ResumeJob(ctx, id, api.ResumeRequest{}), "there is a dataset g, but its content is another")
		if err := n.API().RemoveDataset(ctx, "g", false); err != nil { // nothing needs it
			t.Fatal(err)
		}
		generated(t, n, tiny("g", 0))
		refused(t, "a dataset that is needed again", n.API().RemoveDataset(ctx, "g", false), "job j1 needs dataset g")
		if err := n.API().ResumeJob(ctx, id, api.ResumeRequest{}); err != nil {
			t.Fatal(err)
		}
		complete(t, waitState(c, n, id, "done"), 20)
	})
}

// Only the rate differs when a job goes on at another one.
func TestJobGoesOnAtAnotherRate(t *testing.T) {
	inSchool(t, 1, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		s.Fail = 4
		n, ctx := c.Nodes[0], t.Context()
		id := started(t, n, 10)
		before := waitState(c, n, id, "failed")
		s.Fail = 0
		rate, wrong := 0.001, -1.0
		refused(t, "a rate below 0", n.API().ResumeJob(ctx, id, api.ResumeRequest{Rate: &wrong}), "--lr is -1")
		if err := n.API().ResumeJob(ctx, "j9", api.ResumeRequest{Rate: &rate}); status404(err) != 404 {
			t.Error(err)
		}
		if err := n.API().ResumeJob(ctx, id, api.ResumeRequest{Rate: &rate}); err != nil {
			t.Fatal(err)
		}
		after := waitState(c, n, id, "done")
		complete(t, after, 10)
		var was, is recipe.Recipe
		if err := json.Unmarshal(before.Recipe, &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(after.Recipe, &is); err != nil {
			t.Fatal(err)
		}
		was.Rate = rate
		a, _ := json.Marshal(was)
		b, _ := json.Marshal(is)
		if string(a) != string(b) {
			t.Errorf("it goes on with %s, not %s", b, a)
		}
	})
}

// Without validation vertices there is no best epoch until the last is known.
func TestNothingIsBestWithoutValidation(t *testing.T) {
	inSchool(t, 1, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		s.Judged = 0
		n := c.Nodes[0]
		id := started(t, n, 3)
		c.Wait("an epoch is known", time.Minute, func() bool { return len(jobOn(n, id).History) > 0 })
		if j := jobOn(n, id); j.State != "running" || j.Best != nil || j.History[0].ValAccuracy != nil || j.History[0].TestAccuracy == nil {
			t.Errorf("while it runs: %+v", j)
		}
		j := waitState(c, n, id, "done")
		if j.Best == nil || j.Best.Epoch != 3 || j.Best.ValAccuracy != nil || *j.Best.TestAccuracy != 0.375 {
			t.Errorf("in the end: %+v", j.Best)
		}
		// Who comes late reads the notes too.
		var notes []string
		_, err := n.API().WatchJob(t.Context(), id, func(e api.JobEvent) {
			if e.Note != "" {
				notes = append(notes, e.Note)
			}
		})
		if err != nil || !slices.Equal(notes, []string{"it is only a school"}) {
			t.Errorf("told %q (%v)", notes, err)
		}
	})
}

// What is asked of a model that is not there says why it is not.
func TestModelsThatAreNotThere(t *testing.T) {
	inSchool(t, 3, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		ctx := t.Context()
		id := started(t, c.Nodes[0], 3)
		runner := named(c, waitState(c, c.Nodes[0], id, "done").Nodes[0])
		waitState(c, runner, id, "done")
		refused(t, "a damaged model", runner.API().ExportJob(ctx, id, api.ExportRequest{}, nil), "the model of job j1 is damaged: start another job", "hopmesh train remove j1")
		other := c.Others(runner)[0]
		c.Isolate(runner)
		failed(c, runner)
		if _, err := other.API().ForceLeave(ctx, api.ForceLeaveRequest{Name: runner.Name}); err != nil {
			t.Fatal(err)
		}
		c.Wait("that is known", time.Minute, func() bool {
			return !slices.ContainsFunc(other.Members(), func(m api.Member) bool { return m.Name == runner.Name })
		})
		refused(t, "a model that is gone", other.API().ExportJob(ctx, id, api.ExportRequest{}, nil), "was on node "+runner.Name+", which is no longer in the mesh", "start another job")

		s.Pace, s.Fail = time.Minute, 1
		first, second := started(t, other, 3), started(t, other, 3)
		third := started(t, other, 3)
		waitState(c, other, first, "running")
		if err := other.API().StopJob(ctx, third); err != nil {
			t.Fatal(err)
		}
		refused(t, "a job that never began", other.API().ExportJob(ctx, third, api.ExportRequest{}, nil), "was stopped before it began", "`hopmesh train resume "+third+"`")
		for _, id := range []string{first, second} {
			runner := named(c, waitState(c, other, id, "failed").Nodes[0])
			waitState(c, runner, id, "failed")
			refused(t, "a job that never got anywhere", runner.API().ExportJob(ctx, id, api.ExportRequest{}, nil), "job "+id+" ended before it had a checkpoint")
		}
	})
}
