package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
)

const second = time.Second

func recipeText(t testing.TB, r recipe.Recipe) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// whole fails the test unless each epoch is there, once.
func whole(t *testing.T, j plan.Job, epochs int) {
	t.Helper()
	if len(j.History) != epochs {
		t.Errorf("%d epochs, not %d", len(j.History), epochs)
	}
	for i, e := range j.History {
		if e.Epoch != i+1 {
			t.Errorf("epoch %d is told of in place %d", e.Epoch, i+1)
		}
	}
}

// generations lists those of the epochs, each once.
func generations(j plan.Job) (list []uint64) {
	for _, e := range j.History {
		list = append(list, e.Generation)
	}
	return slices.Compact(list)
}

// All nodes of a job train, the first tells of it, and nobody goes before the others
// have what they need.
func TestSharedRun(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		begin := time.Now()
		id := c.share(5)
		time.Sleep(4500 * time.Millisecond)
		if j := c.job(id); j.State != plan.Running || j.Last() != 4 {
			t.Errorf("after 4.5 s it is %s with %d epochs", j.State, j.Last())
		}
		synctest.Wait()
		for c.job(id).State == plan.Running {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait() // the others may end at the same moment
		if took := time.Since(begin); took > 5*second+2*time.Millisecond {
			t.Errorf("five epochs of a second took %s", took)
		}
		j := c.job(id)
		whole(t, j, 5)
		if j.State != plan.Done || j.Best != 3 || c.hung() != 3 {
			t.Errorf("it is %s, the best is %d, and %d sessions have ended", j.State, j.Best, c.hung())
		}
		if len(c.tellers) != 1 || c.tellers["a"] < 6 {
			t.Errorf("told by %v", c.tellers)
		}
		if e := j.History[2]; e.Rows != (epoch.Rows{Local: 300, Remote: 100}) || e.Strategy != "leap" {
			t.Errorf("%+v", e)
		}
		if _, err := os.Stat("/proc/self/maps"); err == nil && (c.mapped(0) || c.mapped(3)) {
			t.Error("shards are still mapped")
		}
		held, known := map[string]int{}, map[string]int{}
		for _, r := range c.Runs() {
			held[r.Node], known[r.Node] = r.Held, r.Known
			if !slices.Equal(r.Nodes, []string{"alpha", "beta", "gamma"}) {
				t.Errorf("shared by %v", r.Nodes)
			}
		}
		// What a node holds beside what it owns is given to the engine too.
		if len(held) != 3 || held["alpha"] != 2 || held["beta"] != 1 || held["gamma"] != 2 {
			t.Errorf("held %v", held)
		}
		if known["alpha"]+known["beta"] != 0 || known["gamma"] != 1 {
			t.Errorf("copies that all know of: %v", known)
		}
	})
}

// A node whose way to another breaks asks for a new generation, in which the job goes
// on at once from the last epoch.
func TestSharedRunIsBegunAnew(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		id := c.share(6)
		old := c.job(id)
		time.Sleep(2500 * time.Millisecond)
		c.net(old.Generation, 3).cut(1, 2)
		time.Sleep(600 * time.Millisecond) // the third epoch ends, and can't be told to all
		j := c.job(id)
		if j.State != plan.Running || j.Generation <= old.Generation {
			t.Fatalf("%+v", j)
		}
		begin := c.Runs()[3].At
		if after := begin.Sub(c.Runs()[0].At); after != 3*second {
			t.Errorf("begun anew after %s", after)
		}
		j = c.ended(id)
		whole(t, j, 6)
		if g := generations(j); j.State != plan.Done || len(g) != 2 {
			t.Errorf("it is %s, over generations %v", j.State, g)
		}
		if r := c.renewals[0]; r.Generation != old.Generation || !strings.Contains(r.Why, "cut") {
			t.Errorf("%+v", r)
		}
	})
}

func (n *net) cut(from, to int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken = func(f, t int, _ peer.Query) error {
		if f == from && t == to {
			return errors.New("the way is cut")
		}
		return nil
	}
}

// The leader is asked until it answers.
func TestSharedRunIsBegunAnewWithoutALeader(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		id := c.share(6)
		old := c.job(id)
		time.Sleep(2500 * time.Millisecond)
		c.set(func() { c.silent = true })
		c.net(old.Generation, 3).cut(1, 2)
		time.Sleep(10 * second)
		if j := c.job(id); j.Generation != old.Generation || j.State != plan.Running {
			t.Fatalf("%+v", j)
		}
		c.set(func() { c.silent = false })
		time.Sleep(lookEvery)
		if j := c.job(id); j.Generation == old.Generation {
			t.Fatalf("%+v", j)
		}
		j := c.ended(id)
		if whole(t, j, 6); j.State != plan.Done {
			t.Errorf("%+v", j)
		}
	})
}

// A job that gets on between its troubles is not given up, be it by steps or epochs.
func TestProgressAllowsMoreRenewals(t *testing.T) {
	for what, advance := range map[string]func(o train.Options, n int){
		"a step":   func(o train.Options, n int) { o.Progress(train.Progress{Epoch: 1, Step: n}) },
		"an epoch": func(o train.Options, n int) { o.Report(lesson(n)) },
	} {
		inCrowd(t, func(t *testing.T, c *crowd) {
			var attempts [3]atomic.Int32
			c.teach(func(_ context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
				n := int(attempts[o.Work.Self].Add(1))
				advance(o, n)
				if n < 3*mostRenewals {
					return train.Result{}, &unanswered{errors.New("nothing is heard")}
				}
				return train.Result{Best: lesson(1), Last: lesson(n)}, nil
			})
			if j := c.ended(c.share(50)); j.State != plan.Done {
				t.Errorf("%s: %+v", what, j)
			}
		})
	}
}

// What never gets on ends after a few attempts, and says why; progress makes new ones
// possible.
func TestSharedRunIsGivenUp(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		var attempts atomic.Int32
		c.Fault = func(node string, epoch int) error {
			if epoch == 2 && node == "beta" {
				attempts.Add(1)
				return &unanswered{errors.New("nothing is heard of gamma")}
			}
			return nil
		}
		id := c.share(6)
		j := c.ended(id)
		if j.State != plan.Failed || !strings.Contains(j.Error, "on node beta: nothing is heard of gamma; the job was begun anew 5 times") || j.Last() != 1 {
			t.Errorf("%+v", j)
		}
		if n := attempts.Load(); n != mostRenewals+1 {
			t.Errorf("%d attempts", n)
		}
	})
	p := new(past)
	p.reached(3, 1)
	p.renewed()
	p.reached(3, 1)
	p.reached(2, 7)
	if p.renewals() != 1 {
		t.Error("no progress was taken for some")
	}
	if p.reached(3, 2); p.renewals() != 0 {
		t.Error("progress was not")
	}
}

// What is wrong on one node would be again: the job ends, and names the node.
func TestSharedRunFails(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		c.Fault = func(node string, epoch int) error {
			if epoch == 3 && node == "gamma" {
				return errors.New("the disk is full")
			}
			return nil
		}
		id := c.share(6)
		j := c.ended(id)
		if j.State != plan.Failed || j.Error != "on node gamma: the disk is full" || len(c.nets) > 1 {
			t.Errorf("%+v after %v", j, c.renewals)
		}
		if last := j.Last(); last != 2 {
			t.Errorf("the last epoch is %d", last)
		}
		synctest.Wait()
		if c.hung() != 3 {
			t.Errorf("%d sessions have ended", c.hung())
		}
		// A panic is such a failure too.
		c.Fault = func(node string, _ int) error {
			if node == "beta" {
				panic("index out of range")
			}
			return nil
		}
		if j := c.ended(c.share(2)); j.State != plan.Failed || !strings.Contains(j.Error, "on node beta: a fault of hopmesh itself") {
			t.Errorf("%+v", j)
		}
	})
}

// A job that is stopped leaves a checkpoint on each node, and goes on from the
// furthest.
func TestSharedRunIsStopped(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		id := c.share(6)
		time.Sleep(2500 * time.Millisecond)
		c.apply(plan.StopJob{ID: id})
		synctest.Wait()
		if j := c.job(id); j.State != plan.Stopped || j.Last() != 2 || len(c.renewals) > 0 {
			t.Fatalf("%+v after %v", j, c.renewals)
		}
		c.apply(plan.ResumeJob{ID: id})
		c.assign()
		j := c.ended(id)
		whole(t, j, 6)
		if said := c.Said(); j.State != plan.Done || !slices.Equal(said[3:], []string{"j1 after 2", "j1 after 2", "j1 after 2"}) {
			t.Errorf("%s: ran %v", j.State, said)
		}
	})
}

// A node that has started again does not enter the generation under way, which its
// others are somewhere in: it asks for a new one.
func TestNodeOfASharedRunStartsAgain(t *testing.T) {
	for _, node := range []string{"a", "b"} {
		inCrowd(t, func(t *testing.T, c *crowd) {
			id := c.share(8)
			time.Sleep(2500 * time.Millisecond)
			old := c.job(id)
			c.stops[node]()
			time.Sleep(2 * second) // the others wait for it
			if j := c.job(id); j.Generation != old.Generation {
				t.Fatalf("generation %d after %v", j.Generation, c.renewals)
			}
			c.start(node)
			again := time.Now()
			synctest.Wait()
			if j := c.job(id); j.Generation == old.Generation {
				t.Fatalf("%+v after %v", j, c.renewals)
			}
			j := c.ended(id)
			whole(t, j, 8)
			if why := c.renewals[0].Why; why != errMissed.Error() {
				t.Errorf("begun anew since %s", why)
			}
			runs := c.Runs()
			if j.State != plan.Done || len(runs) != 6 || runs[5].At.Sub(again) > time.Millisecond {
				t.Errorf("%s: ran %v", j.State, runs)
			}
		})
	}
}

// A node that is away is replaced by whoever holds its shards; what the first node
// had not told yet is told by the next one that is first.
func TestSharedRunGoesOnWithoutANode(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		// All shards have a second holder.
		c.apply(plan.PlaceShards{ID: datasetID, Nodes: []string{"a", "b", "c"}, Wanted: [][]int{{0, 1}, {0, 1}, {1, 2}, {2, 1}}})
		c.apply(plan.HoldShards{ID: datasetID, Node: "b", Shards: []int{0, 1, 3}})
		id := c.share(8)
		time.Sleep(2500 * time.Millisecond)
		c.stops["a"]()
		c.set(func() { c.away["a"] = true })
		c.apply(plan.PlaceShards{ID: datasetID, Nodes: []string{"b", "c"}, Wanted: [][]int{{0}, {0}, {0, 1}, {1, 0}}, Away: []string{"a"}})
		c.assign()
		begin := time.Now()
		j := c.ended(id)
		whole(t, j, 8)
		if j.State != plan.Done || !slices.Equal(j.Nodes, []string{"b", "c"}) || len(generations(j)) != 2 {
			t.Errorf("%s on %v, over generations %v", j.State, j.Nodes, generations(j))
		}
		if r := c.Runs()[3]; r.At.Sub(begin) > time.Millisecond || r.After != 2 {
			t.Errorf("went on %s later, %s", r.At.Sub(begin), r)
		}
	})
}

// A daemon that dies while it shares a job is counted, whatever checkpoint it took
// from others meanwhile.
func TestSharedJobThatKillsADaemon(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		id := c.share(8)
		time.Sleep(500 * time.Millisecond)
		r := c.others["b"].running()
		b := newRun(r.cfg, r.job, plan.Dataset{}, r.folder)
		c.stops["b"]()
		for range mostDeaths {
			if err := b.attempt(); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(r.folder, train.CheckpointFile), fmt.Sprint(time.Now(), strings.Repeat("x", 9)))
		}
		c.start("b")
		if j := c.ended(id); j.State != plan.Failed || !strings.Contains(j.Error, "on node beta: the node that ran it died twice") {
			t.Errorf("%+v", j)
		}
	})
}

// A shard that a node must own is there or the job says so; what has been given to
// another meanwhile is no failure; a copy that is damaged does not matter.
func TestShardsOfASharedRun(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		c.missing.Store(2)
		if j := c.ended(c.share(2)); j.State != plan.Done {
			t.Errorf("%+v", j)
		}
		c.missing.Store(3)
		if j := c.ended(c.share(2)); j.State != plan.Failed || !strings.Contains(j.Error, "on node gamma: shard 3 of dataset g can't be used") {
			t.Errorf("%+v", j)
		}
	})
	inCrowd(t, func(t *testing.T, c *crowd) {
		s := c.now()
		j := plan.Job{ID: "j1", Nodes: []string{"a", "b"}, Owners: []int{0, 0, 0, 1}, Strategy: "leap"}
		r := newRun(c.others["a"].cfg, j, s.Datasets[datasetID], "")
		if _, err := r.openShards(t.Context()); !errors.Is(err, errMoved) || !r.fleeting(err) {
			t.Error(err)
		}
		r.job.Owners = r.job.Owners[:3]
		if _, err := r.openShards(t.Context()); err == nil || r.fleeting(err) {
			t.Error(err)
		}
	})
}

// What has been brought of other nodes' shards is kept as long as jobs work on the
// dataset, and given to each generation.
func TestReplicasAreKept(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		seen := make(chan any, 9)
		c.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
			if o.Work.Self == 1 {
				seen <- o.Replicas
			}
			return c.Train(ctx, r, s, o)
		})
		id := c.share(3)
		time.Sleep(1500 * time.Millisecond)
		c.net(c.job(id).Generation, 3).cut(0, 1)
		c.ended(id)
		if a, b := <-seen, <-seen; a != b {
			t.Error("a new generation begins with nothing")
		}
		synctest.Wait()
		if c.others["b"].replicas != nil {
			t.Error("they are kept without a job")
		}
	})
}
