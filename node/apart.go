package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/jobs"
)

// This file is about nodes that are alive, and can't reach each other: a job that they
// share goes on without the one that fewest can reach.

const (
	// apartFor is for how long a node is left out of what works on a dataset. Trying it
	// again costs a job under a minute if the way is still cut.
	apartFor = 10 * time.Minute
	// reachTimeout bounds how long a node that was asked for a sign of life may take.
	reachTimeout = 3 * time.Second
)

// apart is whom the leader leaves out of the work on which dataset. Another leader learns
// it anew.
type apart struct {
	deciding chan struct{} // buffered: full while it is looked who reaches whom

	mu   sync.Mutex
	list []leftOut
}

type leftOut struct {
	dataset, node string
	until         time.Time
	why           string // a sentence
}

func (a *apart) add(l leftOut) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, l)
}

// of lists who is left out of the work on a dataset.
func (a *apart) of(dataset string) (list []leftOut) {
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

// leftOut says whether a node is to own nothing of a dataset for a while, since others that
// work on it can't reach it: unless it alone has a shard that is needed.
func (m *member) leftOut(d plan.Dataset) func(id string) bool {
	list := m.apart.of(d.ID)
	out := func(id string) bool { return slices.ContainsFunc(list, func(l leftOut) bool { return l.node == id }) }
	if len(list) > 0 && d.Lacks(func(id string) bool { return m.answers(id) && !out(id) }).Unserved > 0 {
		return func(string) bool { return false }
	}
	return out
}

// setApart looks which nodes of a job can't reach each other, and leaves out those without
// whom the others can go on.
func (m *member) setApart(ctx context.Context, r jobs.Renewal) {
	select {
	case m.apart.deciding <- struct{}{}:
		defer func() { <-m.apart.deciding }()
	case <-ctx.Done():
		return
	}
	s := m.plan.State()
	j := s.Jobs[r.ID]
	if j.Generation != r.Generation || slices.ContainsFunc(m.apart.of(j.Dataset), func(l leftOut) bool { return slices.Contains(j.Nodes, l.node) }) {
		return // it is decided
	}
	cuts := m.cutsAmong(ctx, j.Nodes)
	for _, id := range plan.LeaveOut(s, j.ID, cuts, m.answers) {
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
			nameOf(s, id), j.DatasetName, l.until.UTC().Format("15:04:05 MST"), nodesNamed(s, from))
		m.apart.add(l)
		m.log.Warn("a node is left out of a job that it shared", "job", j.ID, "why", l.why)
	}
}

// cutsAmong asks nodes whom of each other they can't reach now.
func (m *member) cutsAmong(ctx context.Context, nodes []string) (cuts []plan.Cut) {
	ask, err := json.Marshal(nodes)
	if err != nil {
		return nil
	}
	told := make([][]string, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			if n == m.id.ID() {
				told[i] = m.unreached(ctx, nodes)
				return
			}
			ctx, cancel := context.WithTimeout(ctx, 2*reachTimeout)
			defer cancel()
			b, err := m.mesh.Call(ctx, n, callReach, ask)
			if err == nil {
				err = json.Unmarshal(b, &told[i])
			}
			if err != nil {
				m.log.Debug("ask a node whom it reaches", "node", n, "err", err)
			}
		})
	}
	wg.Wait()
	for i, n := range nodes {
		for _, other := range told[i] {
			cuts = append(cuts, plan.Cut{A: n, B: other})
		}
	}
	return cuts
}

// unreached lists those of these nodes that give this one no sign of life.
func (m *member) unreached(ctx context.Context, nodes []string) []string {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	silent := make([]bool, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		if n == m.id.ID() {
			continue
		}
		wg.Go(func() {
			_, err := m.mesh.Call(ctx, n, callStats, nil)
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

// serveReach answers the leader whom this node reaches.
func (m *member) serveReach() {
	m.mesh.Handle(callReach, func(ctx context.Context, peer string, b []byte) ([]byte, error) {
		if peer != m.plan.Leader() {
			return nil, errNotFromLeader
		}
		var nodes []string
		if err := json.Unmarshal(b, &nodes); err != nil {
			return nil, mesh.Refuse(reasonInvalid, "the question can't be read: %v", err)
		}
		members := m.plan.State().Members
		nodes = slices.DeleteFunc(nodes, func(n string) bool { _, in := members[n]; return !in })
		slices.Sort(nodes)
		return json.Marshal(m.unreached(ctx, slices.Compact(nodes)))
	})
}
