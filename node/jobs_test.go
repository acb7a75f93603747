package node_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// attended makes all nodes that start from now on go to one school.
func attended(s *school.School, nodes ...*nodetest.Instance) {
	for _, n := range nodes {
		n.Options.Train = s.Train
	}
}

// inSchool is a mesh of nodes that all hold a dataset "g", and train at this pace.
func inSchool(t *testing.T, nodes int, pace time.Duration, f func(t *testing.T, c *nodetest.Cluster, s *school.School)) {
	t.Helper()
	inSchoolWith(t, nodes, nodes-1, pace, f)
}

// inSchoolWith is inSchool with so many copies of each shard beside its owner's.
func inSchoolWith(t *testing.T, nodes, replicas int, pace time.Duration, f func(t *testing.T, c *nodetest.Cluster, s *school.School)) {
	t.Helper()
	nodetest.Virtual(t, 0, func(t *testing.T, c *nodetest.Cluster) {
		s := &school.School{Pace: pace, Judged: 9}
		for range nodes {
			i := c.Add()
			attended(s, i)
			if len(c.Nodes) == 1 {
				i.Options.Bootstrap = true
			} else {
				i.Options.Join, i.Options.Token = []string{c.Nodes[0].Addr()}, c.Nodes[0].Token()
			}
			i.Start()
			i.WaitReady()
			i.Options.Bootstrap, i.Options.Join, i.Options.Token = false, nil, ""
		}
		if nodes >= 3 {
			c.WaitVoters(3)
		}
		generated(t, c.Nodes[0], tiny("g", replicas))
		c.Wait("all know the dataset", time.Minute, func() bool {
			for _, n := range c.Nodes {
				if !copied(n.Dataset("g"), replicas, c.Nodes...) {
					return false
				}
			}
			return true
		})
		f(t, c, s)
	})
}

func started(t *testing.T, on *nodetest.Instance, epochs int) string {
	t.Helper()
	return startedAs(t, on, "single", epochs)
}

// startedAs starts a job under a strategy.
func startedAs(t *testing.T, on *nodetest.Instance, strategy string, epochs int) string {
	t.Helper()
	id, err := on.API().StartJob(t.Context(), api.TrainRequest{Dataset: "g", Strategy: strategy, Epochs: &epochs})
	if err != nil {
		t.Fatalf("start a job on %s: %v", on.Name, err)
	}
	return id
}

// jobOn is a job as the node shows it; empty if it does not.
func jobOn(n *nodetest.Instance, id string) api.Job {
	if !n.Running() {
		return api.Job{}
	}
	j, err := n.API().Job(context.Background(), id)
	if err != nil {
		return api.Job{}
	}
	return j
}

func waitState(c *nodetest.Cluster, n *nodetest.Instance, id, state string) api.Job {
	c.T.Helper()
	c.Wait(id+" is "+state+", says "+n.Name, 5*time.Minute, func() bool { return jobOn(n, id).State == state })
	return jobOn(n, id)
}

// complete fails the test unless each epoch up to the last is there, once.
func complete(t *testing.T, j api.Job, epochs int) {
	t.Helper()
	if len(j.History) != epochs {
		t.Errorf("job %s has %d epochs, not %d", j.ID, len(j.History), epochs)
	}
	for i, e := range j.History {
		if e.Epoch != i+1 || e.Weights != fmt.Sprintf("%064x", i+1) || e.ValAccuracy == nil || e.Generation == 0 {
			t.Errorf("epoch %d of job %s is %+v", i+1, j.ID, e)
		}
	}
}

// failed waits until all others see that a node does not answer.
func failed(c *nodetest.Cluster, n *nodetest.Instance) {
	c.T.Helper()
	c.Wait("it has failed", time.Minute, func() bool {
		for _, other := range c.Others(n) {
			if !slices.ContainsFunc(other.Members(), func(m api.Member) bool { return m.Name == n.Name && m.Status == "failed" }) {
				return false
			}
		}
		return true
	})
}

// named finds the instance of that name.
func named(c *nodetest.Cluster, name string) *nodetest.Instance {
	return c.Nodes[slices.IndexFunc(c.Nodes, func(n *nodetest.Instance) bool { return n.Name == name })]
}

func TestJobRunsToItsEnd(t *testing.T) {
	inSchool(t, 3, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := started(t, c.Nodes[1], 8)
		if id != "j1" {
			t.Errorf("the first job is called %s", id)
		}
		waitState(c, c.Nodes[0], id, "running")
		runner := named(c, jobOn(c.Nodes[0], id).Nodes[0])
		other := c.Others(runner)[0]
		c.Wait("the other node says how far it is", time.Minute, func() bool { j := jobOn(other, id); return j.Epoch > 2 && j.Steps == 2 })
		if st := other.Status(); st.Jobs != 1 || len(st.Training) != 1 || st.Training[0].ID != id {
			t.Errorf("status has %+v", st)
		}
		if jobs := other.Plan().Jobs; len(jobs) != 1 {
			t.Errorf("the plan has %+v", jobs)
		}
		var seen []string
		epochs := 0
		end, err := other.API().WatchJob(t.Context(), id, func(e api.JobEvent) {
			switch {
			case e.State != nil:
				seen = append(seen, e.State.State)
			case e.Note != "":
				seen = append(seen, e.Note)
			case e.Epoch != nil:
				if epochs > 0 && e.Epoch.Epoch != epochs+1 {
					t.Errorf("epoch %d is told of after %d", e.Epoch.Epoch, epochs)
				}
				epochs = e.Epoch.Epoch
			case e.Progress != nil && !slices.Contains(seen, "progress"):
				seen = append(seen, "progress")
			}
		})
		if err != nil || end.State != "done" || epochs != 8 || !slices.Equal(seen, []string{"running", "it is only a school", "progress", "done"}) {
			t.Errorf("watched %v up to epoch %d, then %+v (%v)", seen, epochs, end.State, err)
		}
		for _, n := range c.Nodes {
			j := waitState(c, n, id, "done")
			complete(t, j, 8)
			if j.Best == nil || j.Best.Epoch != 3 || *j.Best.ValAccuracy != 0.75 || j.Model != "gcn" || j.Strategy != "single" || j.Why == "" || j.EpochsTotal != 8 || len(j.Problems) > 0 ||
				!slices.Equal(j.Notes, []string{"it is only a school"}) {
				t.Errorf("%s shows %+v", n.Name, j)
			}
		}
		if said := s.Said(); len(said) != 1 {
			t.Errorf("ran %v", said)
		}
		for _, asked := range []func(context.Context, string) error{
			func(ctx context.Context, id string) error {
				return other.API().ExportJob(ctx, id, api.ExportRequest{}, nil)
			},
			func(ctx context.Context, id string) error {
				return other.API().Predict(ctx, id, api.PredictRequest{Format: ".npy"}, nil)
			},
		} {
			// It is brought here, and a school's is no model.
			if err := asked(t.Context(), id); err == nil || !strings.Contains(err.Error(), "the model of job j1 is damaged") {
				t.Errorf("asked for the model elsewhere: %v", err)
			}
		}
	})
}

// One at a time on a node, in the order in which they came; each of two nodes takes
// one.
func TestJobsQueue(t *testing.T) {
	inSchool(t, 2, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		for range 4 {
			started(t, c.Nodes[0], 5)
		}
		waitState(c, c.Nodes[0], "j2", "running")
		waiting := jobOn(c.Nodes[0], "j3")
		if waiting.State != "queued" || len(waiting.Problems) != 1 || !strings.Contains(waiting.Problems[0], "waits until job j") {
			t.Errorf("j3 is %+v", waiting)
		}
		if p := c.Nodes[0].Status().Problems; slices.ContainsFunc(p, func(p string) bool { return strings.Contains(p, "j3") }) {
			t.Errorf("%q", p)
		}
		if err := c.Nodes[0].API().StopJob(t.Context(), "j4"); err != nil {
			t.Fatal(err)
		}
		if j := jobOn(c.Nodes[0], "j4"); j.State != "stopped" || len(j.Nodes) > 0 {
			t.Errorf("a queued job that is stopped is %+v", j)
		}
		for _, id := range []string{"j1", "j2", "j3"} {
			complete(t, waitState(c, c.Nodes[1], id, "done"), 5)
		}
		said := s.Said()
		slices.Sort(said[:2])
		if !slices.Equal(said, []string{"j1 after 0", "j2 after 0", "j3 after 0"}) || s.Most() != 2 {
			t.Errorf("ran %v, %d at once", said, s.Most())
		}
		// What is done can't be resumed; what never began can.
		if err := c.Nodes[0].API().ResumeJob(t.Context(), "j1", api.ResumeRequest{}); err == nil || !strings.Contains(err.Error(), "is done") {
			t.Errorf("resumed: %v", err)
		}
		if err := c.Nodes[0].API().ResumeJob(t.Context(), "j4", api.ResumeRequest{}); err != nil {
			t.Error(err)
		}
		complete(t, waitState(c, c.Nodes[1], "j4", "done"), 5)
	})
}

func TestJobIsStoppedAndResumed(t *testing.T) {
	inSchool(t, 3, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := started(t, c.Nodes[0], 20)
		c.Wait("some epochs are known", time.Minute, func() bool { return len(jobOn(c.Nodes[2], id).History) > 3 })
		if err := c.Nodes[0].API().RemoveDataset(t.Context(), "g", false); err == nil || !strings.Contains(err.Error(), "job j1 needs dataset g") {
			t.Errorf("removed the dataset of a job: %v", err)
		}
		for range 2 { // a second time changes nothing
			if err := c.Nodes[2].API().StopJob(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		j := jobOn(c.Nodes[2], id)
		n := len(j.History)
		if j.State != "stopped" || j.Error != "" || n < 4 || n > 6 {
			t.Errorf("stopped, it is %+v", j)
		}
		where := j.Nodes[0]
		if err := c.Nodes[1].API().ResumeJob(t.Context(), id, api.ResumeRequest{}); err != nil {
			t.Fatal(err)
		}
		j = waitState(c, c.Nodes[2], id, "done")
		complete(t, j, 20)
		if j.Nodes[0] != where || j.History[0].Generation == j.History[19].Generation {
			t.Errorf("resumed on %v, with generations %d and %d", j.Nodes, j.History[0].Generation, j.History[19].Generation)
		}
		if said := s.Said(); !slices.Equal(said, []string{"j1 after 0", fmt.Sprintf("j1 after %d", n)}) {
			t.Errorf("ran %v", said)
		}
	})
}

// The node that runs a job stops and starts again, while others may lead: the job
// goes on by itself.
func TestJobGoesOnAfterARestart(t *testing.T) {
	inSchool(t, 3, 100*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := started(t, c.Nodes[0], 100)
		c.Wait("some epochs are known", time.Minute, func() bool { return len(jobOn(c.Nodes[0], id).History) > 20 })
		runner := named(c, jobOn(c.Nodes[0], id).Nodes[0])
		other := c.Others(runner)[0]
		if err := runner.Stop(); err != nil {
			t.Fatal(err)
		}
		c.Wait("its silence is noticed", time.Minute, func() bool {
			j := jobOn(other, id)
			return j.State == "running" && len(j.Problems) == 1 && strings.Contains(j.Problems[0], "node "+runner.Name+", which runs job j1, does not answer")
		})
		if p := other.Status().Problems; !slices.ContainsFunc(p, func(p string) bool { return strings.Contains(p, "which runs job j1") }) {
			t.Errorf("%q", p)
		}
		runner.Restart()
		complete(t, waitState(c, other, id, "done"), 100)
		if said := s.Said(); len(said) != 2 || said[1] == "j1 after 0" {
			t.Errorf("ran %v", said)
		}
	})
}

func TestJobOutlivesTheLeader(t *testing.T) {
	inSchool(t, 3, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := started(t, c.Nodes[0], 40)
		waitState(c, c.Nodes[0], id, "running")
		runner := named(c, jobOn(c.Nodes[0], id).Nodes[0])
		// Twice, so that it runs on a follower at least once.
		for range 2 {
			leader := c.Leader()
			if leader == runner {
				leader = c.Others(runner)[0]
			}
			leader.Kill()
			c.Wait("another leads", time.Minute, func() bool { l := runner.Status().Leader; return l != "" && l != leader.Name })
			n := len(jobOn(runner, id).History)
			c.Wait("more epochs are known", time.Minute, func() bool { return len(jobOn(runner, id).History) > n })
			leader.Restart()
			leader.WaitReady()
		}
		complete(t, waitState(c, runner, id, "done"), 40)
		if said := s.Said(); len(said) != 1 {
			t.Errorf("ran %v", said)
		}
	})
}

// A node that runs a job is removed: the job stops, and begins anew elsewhere when it
// is resumed. What the removed node still says counts for nothing.
func TestNodeOfAJobIsRemoved(t *testing.T) {
	inSchool(t, 3, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := started(t, c.Nodes[0], 60)
		c.Wait("some epochs are known", time.Minute, func() bool { return len(jobOn(c.Nodes[0], id).History) > 3 })
		runner := named(c, jobOn(c.Nodes[0], id).Nodes[0])
		other := c.Others(runner)[0]
		c.Isolate(runner)
		failed(c, runner)
		if _, err := other.API().ForceLeave(t.Context(), api.ForceLeaveRequest{Name: runner.Name}); err != nil {
			t.Fatal(err)
		}
		j := waitState(c, other, id, "stopped")
		if !strings.Contains(j.Error, "node "+runner.Name+", which ran it, is no longer in the mesh: `hopmesh train resume "+j.ID+"` begins it") || len(j.History) == 0 {
			t.Errorf("it is %+v", j)
		}
		if err := other.API().ResumeJob(t.Context(), id, api.ResumeRequest{}); err != nil {
			t.Fatal(err)
		}
		j = waitState(c, other, id, "running")
		if j.Nodes[0] == runner.Name || len(j.History) > 1 {
			t.Errorf("resumed, it is %+v", j)
		}
		c.Network.Heal()
		j = waitState(c, other, id, "done")
		complete(t, j, 60)
		if j.Nodes[0] == runner.Name || j.History[0].Generation != j.Generation {
			t.Errorf("in the end it is %+v", j)
		}
	})
}

func TestJobThatFails(t *testing.T) {
	inSchool(t, 1, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		s.Fail = 4
		n := c.Nodes[0]
		id := started(t, n, 10)
		j := waitState(c, n, id, "failed")
		if j.Error != "the training diverged in epoch 4" {
			t.Errorf("%q", j.Error)
		}
		complete(t, j, 3)
		s.Fail = 0
		if err := n.API().ResumeJob(t.Context(), id, api.ResumeRequest{}); err != nil {
			t.Fatal(err)
		}
		complete(t, waitState(c, n, id, "done"), 10)
		// There is nobody to share with.
		j = waitState(c, n, startedAs(t, n, "auto", 2), "done")
		if complete(t, j, 2); j.Strategy != "single" || j.Why != "this mesh has one node" {
			t.Errorf("%s: %s", j.Strategy, j.Why)
		}
		complete(t, waitState(c, n, startedAs(t, n, "leap", 2), "done"), 2)
		// A shard that is damaged is named.
		files := n.Files()
		slices.Sort(files)
		if err := os.Truncate(filepath.Join(n.Options.DataDir, "datasets", files[2]), 100); err != nil {
			t.Fatal(err)
		}
		id = started(t, n, 10)
		if j := waitState(c, n, id, "failed"); !strings.Contains(j.Error, "shard 2 of dataset g can't be used") {
			t.Errorf("%q", j.Error)
		}
	})
}

// What is not exact, or is the whole graph at once, users choose by name.
func TestJobsOfStrategiesByName(t *testing.T) {
	inSchool(t, 3, time.Second, func(t *testing.T, c *nodetest.Cluster, _ *school.School) {
		n := c.Nodes[0]
		for _, name := range []string{"grappa", "pipe", "graph"} {
			if j := jobOn(n, startedAs(t, n, name, 2)); j.Strategy != name {
				t.Errorf("%s: it is of strategy %q", name, j.Strategy)
			}
		}
	})
}

func TestJobsThatAreRefused(t *testing.T) {
	inSchool(t, 3, time.Second, func(t *testing.T, c *nodetest.Cluster, _ *school.School) {
		n := c.Nodes[0]
		generated(t, n, tiny("spread", 0))
		zero, many := 0, 10_001
		for says, r := range map[string]api.TrainRequest{
			"there is no dataset x":                  {Dataset: "x"},
			`there is no strategy "x"`:               {Dataset: "g", Strategy: "x"},
			"--hidden":                               {Dataset: "g", Hidden: &zero},
			"there is no setting":                    {Dataset: "g", Set: []api.Setting{{Key: "x.y", Value: "1"}}},
			"--fanout has 3 numbers":                 {Dataset: "g", Fanout: []int{1, 2, 3}},
			"10001 epochs":                           {Dataset: "g", Epochs: &many},
			"leap.mode=stay is for --strategy leap":  {Dataset: "g", Strategy: "centric", Set: []api.Setting{{Key: "leap.mode", Value: "stay"}}},
			"no node holds every shard of dataset s": {Dataset: "spread", Strategy: "single"},
		} {
			_, err := n.API().StartJob(t.Context(), r)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v does not say %q", err, says)
			}
		}
		if len(n.Plan().Jobs) > 0 {
			t.Errorf("%+v", n.Plan().Jobs)
		}
		ctx := t.Context()
		_, shown := n.API().Job(ctx, "j9")
		_, watched := n.API().WatchJob(ctx, "j9", func(api.JobEvent) {})
		for what, err := range map[string]error{
			"show": shown, "watch": watched, "stop": n.API().StopJob(ctx, "j9"), "resume": n.API().ResumeJob(ctx, "j9", api.ResumeRequest{}),
			"export": n.API().ExportJob(ctx, "j9", api.ExportRequest{}, nil), "predict": n.API().Predict(ctx, "j9", api.PredictRequest{}, nil),
		} {
			if status404(err) != 404 {
				t.Errorf("%s of no job: %v", what, err)
			}
		}
	})
}

// A job is known on all nodes as soon as one has said that there is one.
func TestAJobIsKnownEverywhereAtOnce(t *testing.T) {
	inSchool(t, 3, time.Second, func(t *testing.T, c *nodetest.Cluster, _ *school.School) {
		rate := 0.5
		for what, do := range map[string]func(a api.Backend, id string) error{
			"show": func(a api.Backend, id string) error { _, err := a.Job(t.Context(), id); return err },
			"watch": func(a api.Backend, id string) error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				_, err := a.WatchJob(ctx, id, func(api.JobEvent) { cancel() })
				return err
			},
			"stop": func(a api.Backend, id string) error { return a.StopJob(t.Context(), id) },
			"resume": func(a api.Backend, id string) error {
				return a.ResumeJob(t.Context(), id, api.ResumeRequest{Rate: &rate})
			},
			"remove": func(a api.Backend, id string) error { return a.RemoveJob(t.Context(), id) },
			"predict": func(a api.Backend, id string) error {
				return a.Predict(t.Context(), id, api.PredictRequest{Format: ".npy"}, io.Discard)
			},
			"export": func(a api.Backend, id string) error {
				return a.ExportJob(t.Context(), id, api.ExportRequest{}, io.Discard)
			},
		} {
			for _, on := range c.Nodes {
				for _, other := range c.Others(on) {
					id := started(t, on, 100)
					if err := do(other.API(), id); err != nil && strings.Contains(err.Error(), "there is no job") {
						t.Errorf("%s on %s of a job that %s has just begun: %v", what, other.Name, on.Name, err)
					}
				}
			}
		}
		alone := c.Nodes[2]
		c.Isolate(alone)
		begin := time.Now()
		_, err := alone.API().Job(t.Context(), "j999")
		refused(t, "alone", err, "there is no job j999")
		if d := time.Since(begin); d > 3*time.Second {
			t.Errorf("it took %s to say so", d)
		}
	})
}
