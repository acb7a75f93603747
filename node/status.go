package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/jobs/control"
)

// Status reports the state of the node, and what is wrong.
func (b backend) Status(context.Context) (api.Status, error) {
	p := b.node.parts.Load()
	if p == nil {
		name := b.node.opts.Name
		if joined := b.node.rejoining.Load(); joined != nil {
			name = *joined
		}
		return api.Status{
			Node: name, Device: b.node.opts.Device, DeviceReason: b.node.opts.deviceReason,
			Problems: []string{b.outside()}, Damage: b.node.damage.All(name, func(string) string { return "" }),
		}, nil
	}
	m := p.member
	s := m.Plan().State()
	st := api.Status{
		Node: m.ID().Name(), Generation: s.Generation, Ready: m.Settled(), Members: len(s.Members), Problems: p.problems(s),
		Device: b.node.opts.Device, DeviceReason: b.node.opts.deviceReason,
	}
	st.Damage = p.damage.All(st.Node, func(id string) string { return s.Members[id].Name })
	if l := m.Orders().Leader(); l != "" {
		st.Leader = s.NameOf(l)
	}
	st.Training = control.Summaries(s, func(j plan.Job) bool { return j.State == plan.Running })
	st.Jobs = len(st.Training)
	return st, nil
}

// problems returns sentences on what is wrong and what to do about it: first of the nodes, then of
// jobs, which stand still for it, then of what is being repaired.
func (p *parts) problems(s *plan.State) []string {
	return slices.Concat([]string{}, p.member.Problems(s), p.jobs.Problems(s), p.data.Keeper.Problems(), p.data.Problems(s))
}

// outside says why this node takes part in no mesh now, and what to do.
func (b backend) outside() string {
	if b.node.rejoining.Load() != nil {
		return "this node does not take part in its mesh now: its part of the plan was damaged, and it gets another one from the other nodes"
	}
	return b.node.entrance.Problem()
}

// Ready lists the checks that this node must pass to serve.
func (b backend) Ready(context.Context) []api.Check {
	p := b.node.parts.Load()
	if p == nil {
		return []api.Check{{Name: "member", Detail: "this node is in no mesh"}}
	}
	m := p.member
	s := m.Plan().State()
	_, in := s.Members[m.ID().ID()]
	leader := m.Orders().Leader()
	return []api.Check{
		{Name: "member", OK: true, Detail: "mesh " + m.ID().MeshID()},
		{Name: "leader", OK: leader != "", Detail: s.NameOf(leader)},
		{Name: "plan", OK: in, Detail: fmt.Sprintf("generation %d", s.Generation)},
	}
}
