package jobs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	planned "github.com/hopmesh/hopmesh/consensus/plan/schedule"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/schedule"
	"github.com/hopmesh/hopmesh/engine/train"
)

// scheduled gives a job to all nodes of a crowd, which take its schedule from the plan.
func (c *crowd) scheduled(epochs int) string {
	c.t.Helper()
	n := c.now().JobsMade + 1
	c.apply(plan.CreateJob{Key: fmt.Sprintf("%08x", n), Dataset: datasetID, Recipe: recipeFor(c.t, epochs), Strategy: "leap", Epochs: epochs})
	id := fmt.Sprintf("j%d", n)
	c.again(id)
	return id
}

// again gives the job to all nodes in a new generation.
func (c *crowd) again(id string) {
	c.t.Helper()
	j := c.job(id)
	a := plan.AssignJob{ID: id, Nodes: []string{"a", "b", "c"}, Owners: []int{0, 0, 1, 2}, Scheduled: true}
	if j.State == plan.Running {
		a.Generation = j.Generation
	}
	c.apply(a)
}

// followers is what the runs of a job have followed, node by node, of all its generations.
type followers struct {
	mu     sync.Mutex
	said   map[string]int
	part   string
	finish chan struct{}
}

// train agrees on a first epoch, and on what follows from the third on.
func (f *followers) train(ctx context.Context, _ recipe.Recipe, _ []*graph.Shard, o train.Options) (train.Result, error) {
	e, known := o.Schedule.At(1, 0.5)
	if !known {
		if o.Work.Self == 0 {
			o.Schedule.Propose(schedule.Entry{From: 1, Strategy: "leap", Part: []byte(f.part), Rate: 0.5, Why: "it is\nmeasured"})
		}
		var err error
		if e, err = o.Schedule.Await(ctx, 1); err != nil {
			return train.Result{}, err
		}
	}
	f.mu.Lock()
	f.said[fmt.Sprintf("%d %s %s %v", e.From, e.Strategy, e.Part, known)]++
	f.mu.Unlock()
	select {
	case <-f.finish:
	case <-ctx.Done():
		return train.Result{}, context.Cause(ctx)
	}
	return train.Result{}, nil
}

func (f *followers) follow(said string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.said[said]
}

// What the first node proposes all take from the plan, also in the next generation. Nobody
// begins before the leader has heard of it.
func TestTheScheduleIsInThePlan(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		f := &followers{said: map[string]int{}, part: "two slots", finish: make(chan struct{})}
		c.teach(f.train)
		c.set(func() { c.silent = true })
		id := c.scheduled(9)
		<-time.After(5 * second)
		synctest.Wait()
		if len(f.said) > 0 || len(c.job(id).Schedule) > 0 {
			t.Errorf("without a leader the nodes follow %v", f.said)
		}
		c.set(func() { c.silent = false })
		<-time.After(2 * second)
		if f.follow("1 leap two slots false") != 3 {
			t.Errorf("the nodes follow %v", f.said)
		}
		j := c.job(id)
		if len(j.Schedule) != 1 || j.Schedule[0].Generation != j.Generation || j.Schedule[0].Work != j.Work() || j.Schedule[0].Why != "it is measured" {
			t.Errorf("the plan has %+v", j.Schedule)
		}
		c.again(id)
		<-time.After(2 * second)
		if f.follow("1 leap two slots true") != 3 || len(c.job(id).Schedule) != 1 {
			t.Errorf("in the next generation the nodes follow %v", f.said)
		}
		close(f.finish)
		if j := c.ended(id); j.State != plan.Done {
			t.Errorf("%+v", j)
		}
	})
}

// A job whose schedule the plan refuses ends, and says why.
func TestAScheduleThatIsRefused(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		f := &followers{said: map[string]int{}, part: strings.Repeat("x", 2000), finish: make(chan struct{})}
		c.teach(f.train)
		j := c.ended(c.scheduled(9))
		if j.State != plan.Failed || !strings.Contains(j.Error, "what leap says of its epochs has 2000 bytes") {
			t.Errorf("%+v", j)
		}
	})
}

// A job that was assigned while some member knew of no schedule has none, on all nodes.
func TestJobsWithoutASchedule(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		var mu sync.Mutex
		none := 0
		learn := c.train
		c.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
			mu.Lock()
			if o.Schedule == nil {
				none++
			}
			mu.Unlock()
			return learn(ctx, r, s, o)
		})
		if j := c.ended(c.share(2)); j.State != plan.Done || none != 3 {
			t.Errorf("%d of 3 nodes have no schedule: %+v", none, j)
		}
	})
}

// A job comes back to nodes that had it before, with nothing done in between: the plan takes what is
// proposed for it by dropping what the others were to follow, and adds no entry.
func TestScheduleOfNodesFromBefore(t *testing.T) {
	here, there := planned.Entry{From: 5, Strategy: "pipe", Work: "here", Generation: 1}, planned.Entry{From: 13, Strategy: "pipe", Work: "there", Generation: 2}
	a := &agreed{work: "here", generation: 3, list: planned.List{here, there}, changed: make(chan struct{})}
	if _, known := a.At(13, 0); known {
		t.Fatal("what other nodes were to follow counts")
	}
	again := here
	again.From, again.Generation = 13, 3
	var err error
	if a.list, err = a.list.With(again, 40); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if e, err := a.Known(ctx, 13, 0); err != nil || e.From != 5 {
		t.Errorf("%+v, %v", e, err)
	}
}
