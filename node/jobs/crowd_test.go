package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// crowd is three nodes "a", "b" and "c", which own the world's four shards: a the first
// two, and c holds a copy of b's.
type crowd struct {
	*world
	*school.School
	stops   map[string]func()
	missing atomic.Int32 // the shard whose file c lacks

	lines sync.Mutex
	nets  map[uint64]*net // by the job's generation
	opens []uint64        // generations in which a session was made
	hungs []uint64        // those in which one ended
}

// inCrowd runs a test in virtual time.
func inCrowd(t *testing.T, f func(t *testing.T, c *crowd)) {
	t.Helper()
	w := newWorld(t)
	w.others, w.away = map[string]*Runner{}, map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		c := &crowd{world: w, School: &school.School{Pace: second, Judged: 9}, stops: map[string]func(){}, nets: map[uint64]*net{}}
		c.missing.Store(-1)
		c.teach(c.School.Train)
		for id, name := range map[string]string{"b": "beta", "c": "gamma"} {
			w.apply(plan.AddMember{Member: plan.Member{ID: id, Name: name, PublicKey: "k" + id}})
		}
		w.apply(plan.PlaceShards{ID: datasetID, Nodes: []string{"a", "b", "c"}, Wanted: [][]int{{0}, {0}, {1, 2}, {2}}})
		w.apply(plan.HoldShards{ID: datasetID, Node: "b", Shards: []int{2}})
		w.apply(plan.HoldShards{ID: datasetID, Node: "c", Shards: []int{2, 3}})
		for _, id := range []string{"a", "b", "c"} {
			c.start(id)
		}
		defer func() {
			for _, stop := range c.stops {
				stop()
			}
		}()
		synctest.Wait() // all have read the plan
		f(t, c)
	})
}

// start begins a node's runner.
func (c *crowd) start(id string) {
	r := Open(Config{
		Dir: filepath.Join(c.dir, "jobs-"+id), Self: id, Leader: c.world, Log: slog.New(slog.DiscardHandler), Device: c.device,
		Shard: func(dataset string, shard int) string {
			if shard == int(c.missing.Load()) && id == "c" {
				return filepath.Join(c.dir, "no-such-file")
			}
			return filepath.Join(c.dir, dataset, graph.ShardFile(shard))
		},
		Train: func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
			c.mu.Lock()
			learn := c.train
			c.mu.Unlock()
			return learn(ctx, r, s, o)
		},
		Peers: c.open,
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Run(ctx)
	}()
	c.set(func() {
		c.others[id] = r
		r.Adopt(c.state)
	})
	c.stops[id] = func() {
		cancel()
		<-ended
		c.set(func() { delete(c.others, id) })
	}
}

// share puts a job into the queue and gives it to the nodes.
func (c *crowd) share(epochs int) string {
	c.t.Helper()
	n := c.now().JobsMade + 1
	c.apply(plan.CreateJob{Key: fmt.Sprintf("%08x", n), Dataset: datasetID, Recipe: recipeFor(c.t, epochs), Strategy: "leap", Epochs: epochs})
	c.assign()
	return fmt.Sprintf("j%d", n)
}

// assign is the leader's round.
func (c *crowd) assign() {
	c.t.Helper()
	begin, _ := plan.NextJobs(c.now(), func(id string) bool { return !c.away[id] })
	for _, a := range begin {
		c.apply(a)
	}
}

// A net is the way between the nodes in one generation.
type net struct {
	*loopback.Net
	mu     sync.Mutex
	closed map[int]bool
	silent map[int]bool                           // their nodes are down
	broken func(from, to int, q peer.Query) error // nil: it is whole
}

func (c *crowd) net(generation uint64, nodes int) *net {
	c.lines.Lock()
	defer c.lines.Unlock()
	n := c.nets[generation]
	if n == nil {
		n = &net{Net: loopback.New(nodes), closed: map[int]bool{}, silent: map[int]bool{}}
		n.Trouble = func(_ context.Context, from, to int, q peer.Query) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.closed[to] || n.closed[from] {
				return fmt.Errorf("%w: it is over there", peer.ErrRefused)
			}
			if n.broken != nil {
				return n.broken(from, to, q)
			}
			return nil
		}
		c.nets[generation] = n
	}
	return n
}

// A session ends the handlers that run when it is closed, as those over the mesh do.
type session struct {
	*loopback.Node
	net     *net
	self    int
	ctx     context.Context
	running *sync.WaitGroup
	opened  *atomic.Bool
}

func (s session) Open() {
	s.opened.Store(true)
	s.Node.Open()
}

func (s session) Answer(to peer.Service, h peer.Handler) {
	s.Node.Answer(to, func(ctx context.Context, from int, q peer.Query, reply func(...[]byte) error) error {
		if !s.takes() {
			return fmt.Errorf("%w: it is over here", peer.ErrRefused)
		}
		defer s.running.Done()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()
		return h(ctx, from, q, reply)
	})
}

// takes counts one more handler, unless the session is closed: who closes it waits for
// those that were counted before.
func (s session) takes() bool {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if s.net.closed[s.self] {
		return false
	}
	s.running.Add(1)
	return true
}

// Ask waits for a node that is down, as one does over the mesh for a while.
func (s session) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	answer, err := s.Node.Ask(ctx, node, q, buf)
	if err == nil {
		return answer, nil
	}
	s.net.mu.Lock()
	silent := s.net.silent[node]
	s.net.mu.Unlock()
	if silent {
		<-ctx.Done()
	}
	return nil, err
}

func (c *crowd) open(j plan.Job, names []string, self int) (peer.Peers, func(error)) {
	n := c.net(j.Generation, len(names))
	c.lines.Lock()
	c.opens = append(c.opens, j.Generation)
	c.lines.Unlock()
	ctx, cancel := context.WithCancelCause(context.Background())
	s := session{Node: n.Node(self), net: n, self: self, ctx: ctx, running: new(sync.WaitGroup), opened: new(atomic.Bool)}
	return s, func(cause error) {
		n.mu.Lock()
		n.closed[self], n.silent[self] = true, errors.Is(cause, errStopping)
		n.mu.Unlock()
		cancel(cause)
		s.running.Wait()
		if self == 0 && s.opened.Load() && !c.mapped(0) {
			c.t.Error("a shard is gone while others may be answered from it")
		}
		c.lines.Lock()
		defer c.lines.Unlock()
		c.hungs = append(c.hungs, j.Generation)
	}
}

// mapped reports whether the file of a shard is, as far as the system tells.
func (c *crowd) mapped(shard int) bool {
	maps, err := os.ReadFile("/proc/self/maps")
	return err != nil || strings.Contains(string(maps), filepath.Join(c.dir, datasetID, graph.ShardFile(shard)))
}

// hung counts the sessions that have ended.
func (c *crowd) hung() int {
	c.lines.Lock()
	defer c.lines.Unlock()
	return len(c.hungs)
}

func recipeFor(t testing.TB, epochs int) string {
	t.Helper()
	r := recipe.DefaultRecipe("gcn")
	r.Epochs = epochs
	return recipeText(t, r)
}
