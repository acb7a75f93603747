package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	numbers "github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/node/api"
)

// held is how long the leader of a later version may try to propose what the last node of today does
// not know: many of its rounds.
const held = 5 * time.Second

// later upgrades a mesh of today to a version that raises all numbers.
func later(ctx context.Context, m *mesh, p *page) error {
	b := p.binaries
	if err := m.grow(ctx, b.today, voters); err != nil {
		return err
	}
	if err := m.generate(ctx, "graph", 60_000, 0); err != nil {
		return err
	}
	started := map[bool]string{}
	for _, deterministic := range []bool{false, true} { // the second waits in line behind the first
		j, err := m.nodes[0].StartJob(ctx, recipe("graph", epochs/4, deterministic))
		if err != nil {
			return err
		}
		started[deterministic] = j.ID
	}
	f := follow(ctx, m.nodes[0], started[false])
	err := m.shared(ctx, f, voters)
	f.end()
	if err != nil {
		return err
	}
	if err := m.nodes[0].again(ctx, b.later); err != nil {
		return err
	}
	if err := m.waits(ctx, p, started[false]); err != nil {
		return err
	}
	if err := m.nodes[1].again(ctx, b.later); err != nil {
		return err
	}
	// One of the later version must lead, to want what the last node does not know.
	s, err := m.nodes[0].Status(ctx)
	if err == nil && s.Leader == m.nodes[2].name {
		err = m.nodes[2].again(ctx, b.today)
	}
	if err != nil {
		return err
	}
	for _, n := range m.nodes {
		err := until(ctx, n.name+" sees the others alive", func() (bool, error) {
			list, err := n.Members(ctx)
			return err == nil && !slices.ContainsFunc(list, func(a api.Member) bool { return a.Status != "alive" || a.Unlike != "" }), nil
		})
		if err != nil {
			return err
		}
	}
	p.claim("nodes of today and of a later version form one mesh where their ranges overlap", true, "wire 1 and 1-2")
	old, err := m.nodes[0].Plan(ctx)
	if err != nil {
		return err
	}
	select {
	case <-time.After(held):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	now, err := m.nodes[0].Plan(ctx)
	if err != nil {
		return err
	}
	p.claim("the leader proposes no command that a member does not know", now.Leader != m.nodes[2].name && !m.nodes[2].ended() && now.Needs == old.Needs,
		fmt.Sprintf("in %.0f s of trying; the plan needs command %d", held.Seconds(), now.Needs))
	from := time.Now()
	if err := m.nodes[2].again(ctx, b.later); err != nil {
		return err
	}
	err = until(ctx, "the plan makes use of a later command", func() (bool, error) {
		now, err = m.nodes[2].Plan(ctx)
		return err == nil && now.Needs > int(plan.Newest), nil
	})
	if err != nil {
		return err
	}
	p.claim("once all members know it, it is proposed", true, fmt.Sprintf("%.1f s after the last restart; the plan needs command %d", time.Since(from).Seconds(), now.Needs))
	if _, err := weights(ctx, m.nodes[0], started[false], 4*patience); err != nil {
		return err
	}
	p.claim("a job goes on by itself by the number of all nodes", true, "done")
	err = until(ctx, "the deterministic job says that it waits", func() (bool, error) {
		j, err := m.nodes[0].Job(ctx, started[true])
		if err == nil && j.State != "queued" {
			err = fmt.Errorf("job %s is %s", j.ID, j.State)
		}
		return err == nil && len(j.Problems) == 1 && strings.Contains(j.Problems[0], "it is deterministic"), err
	})
	if err != nil {
		return err
	}
	p.claim("a deterministic job waits for nodes that compute its bits", true, "")
	return m.refusals(ctx, p, b)
}

// waits waits until all nodes say of a job that it waits for nodes of its number.
func (m *mesh) waits(ctx context.Context, p *page, id string) error {
	says := func(text string) bool {
		return strings.Contains(text, fmt.Sprintf("job %s waits, since it computes by number %d and node %s (hopmesh later) by %d: it goes on by itself once",
			id, numbers.Computing, m.nodes[0].name, numbers.Computing+1))
	}
	sentence := ""
	for _, n := range m.nodes {
		err := until(ctx, n.name+" says why the job waits", func() (bool, error) {
			j, err := n.Job(ctx, id)
			s, err2 := n.Status(ctx)
			if err != nil || err2 != nil {
				return false, nil //nolint:nilerr // the leader may be gone
			}
			i := slices.IndexFunc(j.Problems, says)
			if i < 0 {
				return false, nil
			}
			sentence = j.Problems[i]
			return slices.ContainsFunc(s.Problems, says), nil
		})
		if err != nil {
			return err
		}
	}
	p.claim("a job across different computing numbers waits, and says so on all nodes", true, sentence)
	return nil
}

// refusals starts nodes of today where a later version has been.
func (m *mesh) refusals(ctx context.Context, p *page, b binaries) error {
	n := m.nodes[2]
	if err := n.end(ctx); err != nil {
		return err
	}
	if err := n.start(b.today); err != nil {
		return err
	}
	line, err := n.refused(ctx)
	if err != nil {
		return err
	}
	p.claim("a node whose directory a later version has kept does not start as today's", sentence(line), strings.ReplaceAll(line, n.dir, "DIR"))
	if err := n.start(b.later); err != nil {
		return err
	}
	if err := n.ready(ctx); err != nil {
		return err
	}
	fresh, err := m.add(ctx, b.today)
	if err != nil {
		return err
	}
	line, err = fresh.refused(ctx)
	p.claim("a newcomer of today is refused where the plan has made use of a later command", err == nil && sentence(line), line)
	m.nodes = m.nodes[:voters]
	fresh.Close()
	return err
}
