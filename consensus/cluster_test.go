package consensus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// cluster is the nodes of one test in virtual time.
type cluster struct {
	t   *testing.T
	net *network
	log *slog.Logger

	// The test's goroutine writes nodes and what is in them, under mu; the nodes'
	// own goroutines read them, under mu.
	mu    sync.Mutex
	nodes map[string]*node
}

// node is a place where a Consensus runs, stops and runs again.
type node struct {
	*Consensus
	id      string
	cluster *cluster
	stores  Stores
	up      bool
	since   time.Time // it came up or went down

	leading  atomic.Bool    // inside Lead
	dawdle   time.Duration  // how long Lead stays when it should return
	prepared map[string]int // BeforePromote by id
	refuse   error          // what BeforePromote answers
	lag      uint64         // how much it lies about when probed
}

// virtual runs f in a bubble and stops every node at its end. A goroutine that is
// then left over fails the test.
func virtual(t *testing.T, f func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		if os.Getenv("HOPMESH_TEST_LOG") != "" {
			log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
		c := &cluster{t: t, net: newNetwork(), nodes: map[string]*node{}, log: log}
		defer func() {
			for _, n := range c.nodes {
				n.stop()
			}
		}()
		f(t, c)
	})
}

func genesis(id string) *plan.Genesis {
	return &plan.Genesis{MeshID: "mesh", First: member(id), KeyDigest: "digest"}
}

func member(id string) plan.Member {
	return plan.Member{ID: id, Name: "name of " + id, PublicKey: "key of " + id}
}

// found starts a mesh of one, and grow makes it larger.
func (c *cluster) found(id string) *node {
	c.t.Helper()
	n := c.add(id)
	n.start(genesis(id))
	c.leader()
	return n
}

func (c *cluster) grow(ids ...string) {
	c.t.Helper()
	for _, id := range ids {
		c.add(id).start(nil)
		c.apply(plan.AddMember{Member: member(id)})
	}
}

func (c *cluster) add(id string) *node {
	n := &node{id: id, cluster: c, stores: MemoryStores(), prepared: map[string]int{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[id] = n
	return n
}

func (n *node) start(g *plan.Genesis) {
	n.cluster.t.Helper()
	c, err := Open(n.config(g))
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.Consensus, n.up, n.since = c, true, time.Now()
}

func (n *node) config(g *plan.Genesis) Config {
	return Config{
		ID: n.id, Layer: n.cluster.net.listen(n.id), Stores: n.stores, Genesis: g,
		Health: n.health, Probe: n.probe, BeforePromote: n.prepare, Lead: n.letGo, Log: n.cluster.log.With("node", n.id),
	}
}

// stop is a clean one; kill takes it off the network first.
func (n *node) stop() {
	n.cluster.t.Helper()
	if !n.up {
		return
	}
	n.cluster.mu.Lock()
	n.up, n.since = false, time.Now()
	n.cluster.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		n.cluster.t.Errorf("close %s: %v", n.id, err)
	}
}

func (n *node) kill() {
	n.isolate(true)
	n.stop()
	n.isolate(false)
}

func (n *node) isolate(cut bool) {
	for id := range n.cluster.nodes {
		if id != n.id {
			n.cluster.net.sever(n.id, id, cut)
		}
	}
}

// health is perfect gossip.
func (n *node) health(id string) (bool, time.Duration) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	return n.hears(n.cluster.nodes[id])
}

// hears is called with mu held.
func (n *node) hears(o *node) (bool, time.Duration) {
	if o == nil {
		return false, 0
	}
	return o.up && !n.cluster.net.severed(n.id, o.id), time.Since(o.since)
}

func (n *node) probe(_ context.Context, id string) (uint64, error) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	o := n.cluster.nodes[id]
	if alive, _ := n.hears(o); !alive {
		return 0, errUnreachable
	}
	return o.AppliedIndex() - min(o.lag, o.AppliedIndex()), nil
}

func (n *node) prepare(_ context.Context, id string) error {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.prepared[id]++
	return n.refuse
}

// letGo removes those that leave once they have no vote, as a node's leader does.
func (n *node) letGo(ctx context.Context) {
	n.cluster.mu.Lock()
	c, dawdle := n.Consensus, n.dawdle
	n.cluster.mu.Unlock()
	if n.leading.Swap(true) {
		n.cluster.t.Errorf("%s: two terms' work overlaps", n.id)
	}
	defer n.leading.Store(false)
	if c == nil {
		return // it leads before Open has returned
	}
	if dawdle > 0 {
		<-ctx.Done()
		time.Sleep(dawdle)
	}
	for _, s := range c.Servers() {
		if m, in := c.State().Members[s.ID]; in && m.Leaving && !s.Voter {
			if _, err := c.Apply(ctx, plan.RemoveMember{ID: s.ID, Why: plan.Left}); err != nil {
				return
			}
		}
	}
}

func (n *node) voters() []string {
	var ids []string
	for _, s := range n.Servers() {
		if s.Voter {
			ids = append(ids, s.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// wait looks every now and then until ok, and says how long it took.
func (c *cluster) wait(what string, within time.Duration, ok func() bool) time.Duration {
	c.t.Helper()
	begin := time.Now()
	for !ok() {
		if time.Since(begin) > within {
			c.t.Fatalf("%s: not within %s\n%s", what, within, c)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begin)
}

func (c *cluster) String() string {
	text := ""
	for id, n := range c.nodes {
		if n.up {
			text += fmt.Sprintf("%s: leader %q (%v), servers %v, applied %d, %d members\n", id, n.Leader(), n.IsLeader(), n.Servers(), n.AppliedIndex(), len(n.State().Members))
		}
	}
	return text
}

func (c *cluster) running() []*node {
	var list []*node
	for _, n := range c.nodes {
		if n.up {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b *node) int { return cmp.Compare(a.id, b.id) })
	return list
}

// leader waits until one of the running nodes leads and all know it.
func (c *cluster) leader() *node {
	c.t.Helper()
	var found *node
	c.wait("a leader", 30*time.Second, func() bool {
		found = nil
		for _, n := range c.running() {
			if n.IsLeader() {
				found = n
			}
		}
		return found != nil && !slices.ContainsFunc(c.running(), func(n *node) bool { return n.Leader() != found.id })
	})
	return found
}

func (c *cluster) apply(cmd plan.Command) *plan.State {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
	defer cancel()
	for {
		s, err := c.leaderIn(c.running()).Apply(ctx, cmd)
		if err == nil {
			return s
		}
		if !errors.Is(err, ErrNotLeader) {
			c.t.Fatalf("apply %+v: %v", cmd, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// leaderIn waits until one of these nodes leads, whatever others believe.
func (c *cluster) leaderIn(nodes []*node) *node {
	c.t.Helper()
	var found *node
	c.wait("a leader", 30*time.Second, func() bool {
		for _, n := range nodes {
			if n.IsLeader() {
				found = n
			}
		}
		return found != nil
	})
	return found
}

func (c *cluster) waitVoters(within time.Duration, want ...string) {
	c.t.Helper()
	c.wait(fmt.Sprintf("voters %v", want), within, func() bool {
		return !slices.ContainsFunc(c.running(), func(n *node) bool { return !slices.Equal(n.voters(), want) })
	})
}

func (c *cluster) waitVoterCount(within time.Duration, want int) {
	c.t.Helper()
	c.wait(fmt.Sprintf("%d voters", want), within, func() bool {
		return !slices.ContainsFunc(c.running(), func(n *node) bool { return len(n.voters()) != want })
	})
}

func (c *cluster) waitEqual(within time.Duration) {
	c.t.Helper()
	c.wait("equal plans", within, func() bool {
		seen := map[string]bool{}
		for _, n := range c.running() {
			seen[n.State().Digest()] = true
		}
		return len(seen) == 1
	})
}

// pass lets time pass. All who call it live in virtual time.
func pass(d time.Duration) { time.Sleep(d) }
