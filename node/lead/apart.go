package lead

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
)

const (
	// apartFor is how long a node is left out of the work on a dataset. Trying it again
	// costs a job under a minute if the connection is still cut.
	apartFor = 10 * time.Minute
	// reachTimeout bounds how long a node may take to answer callAlive.
	reachTimeout = 3 * time.Second
)

// The calls by which the leader learns which nodes reach each other.
const (
	callReach = "reach" // which of these nodes do you not reach?
	callAlive = "alive" // answered with nothing
)

// Apart records which nodes the leader leaves out of the work on which dataset, because they
// are alive but can't be reached by others: a job that they share goes on without the one that
// fewest can reach. It is not replicated: the next leader finds out again.
type Apart struct {
	mesh     Mesh
	plan     Plan
	answers  func(id string) bool
	log      *slog.Logger
	deciding chan struct{} // buffered: full while Decide runs

	mu   sync.Mutex
	list []leftOut
}

type leftOut struct {
	dataset, node string
	until         time.Time
	why           string // a sentence
}

// NewApart makes an Apart that leaves nobody out, and registers the calls by which another
// leader learns which nodes this one reaches. answers reports whether gossip sees a node alive.
func NewApart(m Mesh, p Plan, answers func(id string) bool, log *slog.Logger) *Apart {
	a := &Apart{mesh: m, plan: p, answers: answers, log: log, deciding: make(chan struct{}, 1)}
	m.Handle(callAlive, func(context.Context, string, []byte) ([]byte, error) { return nil, nil })
	m.Handle(callReach, a.serveReach)
	return a
}

func (a *Apart) add(l leftOut) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, l)
}

// of lists the nodes that are left out of the work on a dataset.
func (a *Apart) of(dataset string) (list []leftOut) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.list = slices.DeleteFunc(a.list, func(l leftOut) bool { return !now.Before(l.until) })
	for _, l := range a.list {
		if l.dataset == dataset {
			list = append(list, l)
		}
	}
	return list
}

// Why returns a sentence for each node that is left out of the work on a dataset, if this node
// leads.
func (a *Apart) Why(dataset string) (list []string) {
	if !a.plan.IsLeader() {
		return nil
	}
	for _, l := range a.of(dataset) {
		list = append(list, l.why)
	}
	return list
}

// LeftOut returns a function that reports whether a node must own nothing of a dataset for a
// while, since others that work on it can't reach it: unless it alone has a shard that is
// needed.
func (a *Apart) LeftOut(d plan.Dataset) func(id string) bool {
	list := a.of(d.ID)
	out := func(id string) bool { return slices.ContainsFunc(list, func(l leftOut) bool { return l.node == id }) }
	if len(list) > 0 && d.Lacks(func(id string) bool { return a.answers(id) && !out(id) }).Unserved > 0 {
		return func(string) bool { return false }
	}
	return out
}

// Decide finds out which nodes of a job, in one generation, can't reach each other, and leaves
// out those that the others can go on without.
func (a *Apart) Decide(ctx context.Context, job string, generation uint64) {
	select {
	case a.deciding <- struct{}{}:
		defer func() { <-a.deciding }()
	case <-ctx.Done():
		return
	}
	s := a.plan.State()
	j := s.Jobs[job]
	if j.Generation != generation || slices.ContainsFunc(a.of(j.Dataset), func(l leftOut) bool { return slices.Contains(j.Nodes, l.node) }) {
		return // already decided
	}
	cuts := a.cutsAmong(ctx, j.Nodes)
	for _, id := range plan.LeaveOut(s, j.ID, cuts, a.answers) {
		var from []string
		for _, c := range cuts {
			switch {
			case c.A == id && !slices.Contains(from, c.B):
				from = append(from, c.B)
			case c.B == id && !slices.Contains(from, c.A):
				from = append(from, c.A)
			}
		}
		l := leftOut{dataset: j.Dataset, node: id, until: time.Now().Add(apartFor)}
		l.why = fmt.Sprintf("node %s is left out of the work on dataset %s until %s, since it and %s can't reach each other: check the network between them",
			s.NameOf(id), j.DatasetName, l.until.UTC().Format("15:04:05 MST"), s.NodesNamed(from))
		a.add(l)
		a.log.Warn("a node is left out of a job that it shared", "job", j.ID, "why", l.why)
	}
}

// cutsAmong asks nodes which of each other they can't reach now.
func (a *Apart) cutsAmong(ctx context.Context, nodes []string) (cuts []plan.Cut) {
	ask, err := json.Marshal(nodes)
	if err != nil {
		return nil
	}
	unreached := make([][]string, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			if n == a.mesh.ID() {
				unreached[i] = a.unreached(ctx, nodes)
				return
			}
			ctx, cancel := context.WithTimeout(ctx, 2*reachTimeout)
			defer cancel()
			b, err := a.mesh.Call(ctx, n, callReach, ask)
			if err == nil {
				err = json.Unmarshal(b, &unreached[i])
			}
			if err != nil {
				a.log.Debug("ask a node whom it reaches", "node", n, "err", err)
			}
		})
	}
	wg.Wait()
	for i, n := range nodes {
		for _, other := range unreached[i] {
			cuts = append(cuts, plan.Cut{A: n, B: other})
		}
	}
	return cuts
}

// unreached lists which of these nodes do not answer this one.
func (a *Apart) unreached(ctx context.Context, nodes []string) []string {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	silent := make([]bool, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		if n == a.mesh.ID() {
			continue
		}
		wg.Go(func() {
			_, err := a.mesh.Call(ctx, n, callAlive, nil)
			silent[i] = err != nil && mesh.RefusalOf(err) == ""
		})
	}
	wg.Wait()
	var list []string
	for i, n := range nodes {
		if silent[i] {
			list = append(list, n)
		}
	}
	return list
}

// serveReach lists for the leader which nodes this one does not reach.
func (a *Apart) serveReach(ctx context.Context, peer string, b []byte) ([]byte, error) {
	if peer != a.plan.Leader() {
		return nil, ErrNotFromLeader
	}
	var nodes []string
	if err := json.Unmarshal(b, &nodes); err != nil {
		return nil, mesh.Refuse(Invalid, "the question can't be read: %v", err)
	}
	members := a.plan.State().Members
	nodes = slices.DeleteFunc(nodes, func(n string) bool { _, in := members[n]; return !in })
	slices.Sort(nodes)
	return json.Marshal(a.unreached(ctx, slices.Compact(nodes)))
}
