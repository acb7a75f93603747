package node_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// ages lists the generations of a job's epochs, each once.
func ages(j api.Job) (list []uint64) {
	for _, e := range j.History {
		list = append(list, e.Generation)
	}
	return slices.Compact(list)
}

// rising fails the test unless the job's epochs are complete, over so many generations
// at least.
func rising(t *testing.T, j api.Job, epochs, generations int) {
	t.Helper()
	complete(t, j, epochs)
	if list := ages(j); len(list) < generations || !slices.IsSorted(list) {
		t.Errorf("the epochs of job %s are of generations %v", j.ID, list)
	}
}

// under waits until so many epochs are known.
func under(c *nodetest.Cluster, n *nodetest.Instance, id string, epochs int) {
	c.T.Helper()
	c.Wait("some epochs are known", time.Minute, func() bool { return len(jobOn(n, id).History) >= epochs })
}

// resumed is how long after begin the job was first trained again.
func resumed(s *school.School, begin time.Time) time.Duration {
	for _, r := range s.Runs() {
		if r.At.After(begin) {
			return r.At.Sub(begin)
		}
	}
	return -1
}

// All owners of a dataset's shards share a job, and each has its model in the end.
func TestJobIsShared(t *testing.T) {
	inSchoolWith(t, 3, 1, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		epochs := 6
		id, err := c.Nodes[1].API().StartJob(t.Context(), api.TrainRequest{Dataset: "g", Epochs: &epochs, Deterministic: true})
		if err != nil {
			t.Fatal(err)
		}
		under(c, c.Nodes[2], id, 2)
		for _, n := range c.Nodes {
			c.Wait(n.Name+" says how far it is", time.Minute, func() bool { return jobOn(n, id).Steps == 2 })
		}
		j := waitState(c, c.Nodes[0], id, "done")
		rising(t, j, epochs, 1)
		if j.Strategy != "auto" || !strings.Contains(j.Why, "3 nodes own shards of dataset g") || len(j.Nodes) != 3 || len(j.Problems) > 0 ||
			!strings.Contains(string(j.Recipe), `"sharing":{"strategy":"auto","deterministic":true`) {
			t.Errorf("%+v", j)
		}
		if e := j.History[2]; e.Rows != (api.JobRows{Local: 300, Remote: 100}) || e.Strategy != "leap" {
			t.Errorf("%+v", e)
		}
		if runs := s.Runs(); len(runs) != 3 || runs[0].Held >= 8 || !slices.Equal(runs[0].Nodes, j.Nodes) {
			t.Errorf("%v", runs)
		}
		for _, n := range c.Nodes {
			c.Wait(n.Name+" has its model", time.Minute, func() bool {
				models, err := filepath.Glob(filepath.Join(n.Options.DataDir, "jobs", id+"-*", train.CheckpointFile))
				return err == nil && len(models) == 1
			})
		}
	})
}

func TestSharedJobOutlivesItsLeader(t *testing.T) {
	jobOutlives(t, func(c *nodetest.Cluster, _ api.Job) *nodetest.Instance { return c.Leader() })
}

// jobOutlives kills a node of a job: the others go on within seconds, and with all again when it
// is back.
func jobOutlives(t *testing.T, choose func(c *nodetest.Cluster, j api.Job) *nodetest.Instance) {
	t.Helper()
	inSchoolWith(t, 3, 1, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := startedAs(t, c.Nodes[0], "leap", 80)
		under(c, c.Nodes[0], id, 5)
		dead := choose(c, jobOn(c.Nodes[0], id))
		other := c.Others(dead)[0]
		begin := time.Now()
		dead.Kill()
		failed(c, dead)
		noticed := time.Since(begin)
		c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 2 })
		n := len(jobOn(other, id).History)
		under(c, other, id, n+2)
		took := resumed(s, begin)
		t.Logf("noticed %s after the kill, and resumed after %s", noticed, took)
		// What gossip needs, and no more than a round.
		if took > 8*time.Second || took > noticed+time.Second {
			t.Errorf("noticed %s after the kill, and resumed after %s", noticed, took)
		}
		if j := jobOn(other, id); slices.Contains(j.Nodes, dead.Name) || j.State != "running" || len(j.Problems) > 0 {
			t.Errorf("%+v", j)
		}
		dead.Restart()
		c.Wait("it has its part again", 2*time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 3 })
		j := waitState(c, other, id, "done")
		rising(t, j, 80, 3)
	})
}

// Five nodes lose two at once, of which none holds what only the other had.
func TestSharedJobOutlivesTwoOfFive(t *testing.T) {
	inSchoolWith(t, 5, 2, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := startedAs(t, c.Nodes[0], "leap", 60)
		under(c, c.Nodes[0], id, 5)
		leader := c.Leader()
		rest := c.Others(leader)
		begin := time.Now()
		rest[0].Kill()
		rest[1].Kill()
		c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(leader, id).Nodes) == 3 })
		j := waitState(c, leader, id, "done")
		rising(t, j, 60, 2)
		t.Logf("resumed %s after the kill", resumed(s, begin))
	})
}

// A node that is stopped says goodbye: the others go on without waiting until gossip finds it
// dead, also if it led.
func TestSharedJobOutlivesAStopAtOnce(t *testing.T) {
	inSchoolWith(t, 3, 2, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		// Each node's goodbye is heeded once in ten seconds, and it may have said one when it joined.
		begun := time.Now()
		c.Wait("goodbyes are heeded again", time.Minute, func() bool { return time.Since(begun) > 11*time.Second })
		id := startedAs(t, c.Nodes[0], "leap", 60)
		under(c, c.Nodes[0], id, 5)
		for _, stops := range []*nodetest.Instance{c.Others(c.Leader())[0], c.Leader()} {
			other := c.Others(stops)[0]
			if err := stops.Stop(); err != nil {
				t.Fatal(err)
			}
			begin, before := time.Now(), len(jobOn(other, id).History)
			took := c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 2 })
			under(c, other, id, before+2)
			t.Logf("it goes on without %s after the stop, and is trained again %s after", took, resumed(s, begin))
			if took > time.Second {
				t.Errorf("goes on %s after the stop", took)
			}
			stops.Restart()
			c.Wait("all three share it", 2*time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 3 })
			stops.WaitReady()
		}
		rising(t, waitState(c, c.Nodes[1], id, "done"), 60, 4)
	})
}

// A node that is started again at once asks for a new generation, before gossip has
// seen anything.
func TestSharedJobGoesOnAfterARestart(t *testing.T) {
	inSchoolWith(t, 3, 1, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := startedAs(t, c.Nodes[0], "leap", 60)
		under(c, c.Nodes[0], id, 5)
		for _, which := range []int{0, 2} {
			j := jobOn(c.Nodes[0], id)
			again := named(c, j.Nodes[which])
			other := c.Others(again)[0]
			before := len(j.History)
			begin := time.Now()
			again.Kill()
			again.Restart()
			under(c, other, id, before+4)
			if took := resumed(s, begin); took > 8*time.Second {
				t.Errorf("resumed %s after the restart", took)
			} else {
				t.Logf("resumed %s after the restart", took)
			}
			c.Wait("all three share it", 2*time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 3 })
			again.WaitReady()
		}
		rising(t, waitState(c, c.Nodes[1], id, "done"), 60, 3)
	})
}

// A node is cut off, the others go on, and it comes back to them.
func TestSharedJobOutlivesAPartition(t *testing.T) {
	cutOff(t, 0)
}

// cutOff cuts off each of these nodes of a job.
func cutOff(t *testing.T, nodes ...int) {
	t.Helper()
	for _, which := range nodes {
		inSchoolWith(t, 3, 1, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
			id := startedAs(t, c.Nodes[0], "centric", 80)
			under(c, c.Nodes[0], id, 5)
			alone := named(c, jobOn(c.Nodes[0], id).Nodes[which])
			other := c.Others(alone)[0]
			begin := time.Now()
			c.Isolate(alone)
			c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 2 })
			t.Logf("resumed %s after the cut", resumed(s, begin))
			n := len(jobOn(other, id).History)
			under(c, other, id, n+5)
			c.Network.Heal()
			c.Wait("it has its part again", 2*time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 3 })
			rising(t, waitState(c, other, id, "done"), 80, 3)
			waitState(c, alone, id, "done")
		})
	}
}

// A node that joins gets shards, and then its part of the job.
func TestSharedJobTakesInANode(t *testing.T) {
	inSchoolWith(t, 2, 1, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := startedAs(t, c.Nodes[0], "leap", 40)
		under(c, c.Nodes[0], id, 5)
		fresh := c.Add()
		attended(s, fresh)
		fresh.Options.Join, fresh.Options.Token = []string{c.Nodes[0].Addr()}, c.Nodes[0].Token()
		fresh.Start()
		fresh.WaitReady()
		c.Wait("it has a part", time.Minute, func() bool { return len(jobOn(c.Nodes[0], id).Nodes) == 3 })
		j := waitState(c, fresh, id, "done")
		rising(t, j, 40, 2)
		if !slices.Contains(j.Nodes, fresh.Name) {
			t.Errorf("%v", j.Nodes)
		}
		if said := s.Said(); !slices.Contains(said[:2], "j1 after 0") || strings.HasSuffix(said[len(said)-1], " 0") {
			t.Errorf("ran %v", said)
		}
	})
}

// Without copies a job waits for the node that is gone, and says so.
func TestSharedJobWaitsForTheLastHolder(t *testing.T) {
	inSchoolWith(t, 3, 0, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := startedAs(t, c.Nodes[0], "leap", 30)
		under(c, c.Nodes[0], id, 5)
		dead := named(c, jobOn(c.Nodes[0], id).Nodes[1])
		other := c.Others(dead)[0]
		dead.Kill()
		failed(c, dead) // each node says what it sees itself, and the leader may be the first to see it
		j := waitState(c, other, id, "queued")
		if len(j.Problems) != 1 || !strings.Contains(j.Problems[0], "job j1 waits for node "+dead.Name+", which alone holds") || !strings.Contains(j.Problems[0], "dataset g") ||
			!strings.Contains(j.Problems[0], "does not answer: start it again, and the job goes on; imported with --replicas 1, a dataset outlives a node") {
			t.Errorf("%q", j.Problems)
		}
		if p := other.Status().Problems; !slices.Contains(p, j.Problems[0]) {
			t.Errorf("%q", p)
		}
		<-time.After(time.Minute)
		if j := jobOn(other, id); j.State != "queued" {
			t.Errorf("%+v", j)
		}
		dead.Restart()
		begin := time.Now()
		rising(t, waitState(c, other, id, "done"), 30, 2)
		t.Logf("resumed %s after the restart", resumed(s, begin))
	})
}

// All see the wish to stop, and the job goes on from where they were.
func TestSharedJobIsStoppedAndResumed(t *testing.T) {
	inSchoolWith(t, 3, 1, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		id := startedAs(t, c.Nodes[0], "leap", 20)
		under(c, c.Nodes[0], id, 5)
		begin := time.Now()
		if err := c.Nodes[2].API().StopJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		j := jobOn(c.Nodes[2], id)
		if took := time.Since(begin); j.State != "stopped" || took > 2*time.Second {
			t.Errorf("%s after %s", j.State, took)
		}
		if err := c.Nodes[1].API().ResumeJob(t.Context(), id, api.ResumeRequest{}); err != nil {
			t.Fatal(err)
		}
		rising(t, waitState(c, c.Nodes[0], id, "done"), 20, 2)
		if runs := s.Runs(); len(runs) != 6 || runs[5].After < len(j.History) {
			t.Errorf("ran %v", runs)
		}
		// While a node is away, too.
		id = startedAs(t, c.Nodes[0], "leap", 200)
		under(c, c.Nodes[0], id, 5)
		dead := c.Others(c.Leader())[0]
		other := c.Others(dead)[0]
		dead.Kill()
		if err := other.API().StopJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if j := waitState(c, other, id, "stopped"); len(j.History) < 5 {
			t.Errorf("%+v", j)
		}
	})
}

// What goes wrong on one node ends the job on all, and says where.
func TestSharedJobFails(t *testing.T) {
	inSchoolWith(t, 3, 1, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		s.Fault = func(node string, epoch int) error {
			if node == "n1" && epoch == 4 {
				return errors.New("the disk is full")
			}
			return nil
		}
		id := startedAs(t, c.Nodes[0], "leap", 20)
		j := waitState(c, c.Nodes[2], id, "failed")
		if j.Error != "on node n1: the disk is full" || len(ages(j)) != 1 {
			t.Errorf("%q, over generations %v", j.Error, ages(j))
		}
		// Shards that are damaged are named, with the node, and others' copies serve.
		s.Fault = nil
		files := c.Nodes[1].Files()
		for _, f := range files {
			if err := os.Truncate(filepath.Join(c.Nodes[1].Options.DataDir, "datasets", f), 100); err != nil {
				t.Fatal(err)
			}
		}
		id = startedAs(t, c.Nodes[0], "leap", 20)
		complete(t, waitState(c, c.Nodes[2], id, "done"), 20)
		told(c, "shard", c.Nodes[1])
	})
}

// A node that has no room for checkpoints says so in its own status, and all say it of the
// job, until there is room.
func TestANodeWithoutRoomForCheckpointsIsNamed(t *testing.T) {
	inSchool(t, 3, time.Second, func(t *testing.T, c *nodetest.Cluster, s *school.School) {
		full := c.Nodes[1]
		var room atomic.Bool
		s.Unkept = func(node string) error {
			if node == full.Name && !room.Load() {
				return errors.New("write it: no space left on device")
			}
			return nil
		}
		id := startedAs(t, c.Nodes[0], "leap", 1000)
		want := "node " + full.Name + " keeps no checkpoint of job " + id + ": write it: no space left on device: free some space in its data directory, and it keeps the next"
		c.Wait("all say it of the job", time.Minute, func() bool {
			return !slices.ContainsFunc(c.Nodes, func(n *nodetest.Instance) bool { return !slices.Contains(jobOn(n, id).Problems, want) })
		})
		for _, n := range c.Nodes {
			if p := n.Status().Problems; slices.Contains(p, want) != (n == full) {
				t.Errorf("the status of %s has %q", n.Name, p)
			}
		}
		room.Store(true)
		c.Wait("nobody says it any more", time.Minute, func() bool {
			return len(full.Status().Problems) == 0 && !slices.ContainsFunc(c.Nodes, func(n *nodetest.Instance) bool { return len(jobOn(n, id).Problems) != 0 })
		})
	})
}

// Two nodes that are gone are spoken of as two, and the advice is for more copies than
// there are.
func TestSharedJobWaitsForTwoHolders(t *testing.T) {
	inSchoolWith(t, 5, 1, 500*time.Millisecond, func(t *testing.T, c *nodetest.Cluster, _ *school.School) {
		id := startedAs(t, c.Nodes[0], "leap", 30)
		under(c, c.Nodes[0], id, 3)
		d := c.Nodes[0].Dataset("g")
		a, b := d.Shards[0].Owner, d.Shards[0].Replicas[0]
		named(c, a).Kill()
		named(c, b).Kill()
		failed(c, named(c, a)) // each node says what it sees itself, and the leader may be the first to see it
		failed(c, named(c, b))
		other := c.Others(nil)[0]
		names := []string{"node " + a, "node " + b}
		slices.Sort(names)
		j := waitState(c, other, id, "queued")
		want := []string{strings.Join(names, " and ") + ", which alone hold ", " and do not answer: start them again, ", "imported with --replicas 2, a dataset outlives 2 nodes"}
		for _, w := range want {
			if len(j.Problems) != 1 || !strings.Contains(j.Problems[0], w) {
				t.Errorf("%q does not say %q", j.Problems, w)
			}
		}
	})
}
