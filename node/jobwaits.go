package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// A wait is what a node says of another one, which has not answered it for long.
type wait struct {
	From    string  `json:"from"` // the node that waits, by its id
	On      string  `json:"on"`
	What    string  `json:"what"` // it asked for
	Seconds float64 `json:"seconds"`
	Lost    bool    `json:"lost"` // it can't reach the other one
}

// waitsHere lists for whom this node waits in a job.
func (m *member) waitsHere(j plan.Job) (list []wait) {
	for _, w := range m.peers.Waits(j.Key) {
		list = append(list, wait{m.id.ID(), w.Node, w.What, w.For.Seconds(), w.Lost})
	}
	return list
}

// sentences are waits in words, those first that explain others. Where nodes can't reach
// each other, it is of no interest who waits for those; who does not answer gossip is told
// of elsewhere.
func (m *member) sentences(s *plan.State, waits []wait) (list []string) {
	waits = slices.DeleteFunc(slices.Clone(waits), func(w wait) bool { return !m.answers(w.On) })
	if slices.ContainsFunc(waits, func(w wait) bool { return w.Lost }) {
		waits = slices.DeleteFunc(waits, func(w wait) bool { return !w.Lost })
	}
	slices.SortFunc(waits, func(a, b wait) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.From, b.From), cmp.Compare(a.On, b.On))
	})
	for _, w := range waits {
		from, on := nameOf(s, w.From), nameOf(s, w.On)
		advice := fmt.Sprintf("it is slow, or waits itself, as `hopmesh status` on node %s says; else check the network between the two", on)
		if w.Lost {
			advice = "check the network between the two"
		}
		list = append(list, fmt.Sprintf("node %s has not answered node %s's question for %s for %d s: %s", on, from, w.What, int(w.Seconds), advice))
	}
	return list
}

// saidOf is what nodes say now that keeps a job from going on, or from being kept: those
// that share it, and the leader.
func (m *member) saidOf(ctx context.Context, s *plan.State, j plan.Job) []string {
	if j.State != plan.Running {
		return nil
	}
	nodes := j.Nodes
	if leader := m.plan.Leader(); j.Shared() && leader != "" && !slices.Contains(nodes, leader) {
		nodes = append(slices.Clone(nodes), leader)
	}
	told := make([]live, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		switch {
		case n == m.id.ID():
			told[i] = m.liveHere(j.ID)
		case m.answers(n):
			wg.Go(func() { told[i] = m.liveAt(ctx, n, j) })
		}
	}
	wg.Wait()
	var waits []wait
	var others []string
	for i, l := range told {
		for _, w := range l.Waits {
			if _, in := s.Members[w.On]; in && w.From == nodes[i] {
				waits = append(waits, w)
			}
		}
		others = append(others, l.Apart...)
		if l.Unkept != "" {
			others = append(others, unkept(nameOf(s, nodes[i]), j.ID, l.Unkept))
		}
	}
	return append(m.sentences(s, waits), others...)
}

// saidHere are the words of this node alone, for its own status.
func (m *member) saidHere(s *plan.State) (list []string) {
	for _, j := range s.Jobs {
		if j.State != plan.Running || !j.Shared() {
			continue
		}
		l := m.liveHere(j.ID)
		list = append(append(list, m.sentences(s, l.Waits)...), l.Apart...)
	}
	return list
}

// apartFrom says who is left out of a job, if this node leads.
func (m *member) apartFrom(j plan.Job) (list []string) {
	if !m.plan.IsLeader() {
		return nil
	}
	for _, l := range m.apart.of(j.Dataset) {
		list = append(list, l.why)
	}
	return list
}
