package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
)

func (b backend) Status(context.Context) (api.Status, error) {
	m := b.node.member.Load()
	if m == nil {
		return api.Status{
			Node: b.node.opts.Name, Device: b.node.opts.Device, DeviceReason: b.node.opts.deviceReason,
			Problems: []string{"this node is in no mesh: run `hopmesh join HOST:PORT --token TOKEN`"},
		}, nil
	}
	s := m.plan.State()
	st := api.Status{
		Node: m.id.Name(), Generation: s.Generation, Ready: m.settled(), Members: len(s.Members), Problems: []string{},
		Device: m.opts.Device, DeviceReason: m.opts.deviceReason,
	}
	if l := m.leader(); l != "" {
		st.Leader = nameOf(s, l)
	}
	st.Training = m.jobSummaries(s, func(j plan.Job) bool { return j.State == plan.Running })
	st.Jobs = len(st.Training)
	st.Problems = append(st.Problems, m.problems()...)
	return st, nil
}

// problems says in plain sentences what is wrong and what to do about it.
func (m *member) problems() []string {
	var list []string
	s := m.plan.State()
	voters, dead := 0, []string{}
	for _, server := range m.plan.Servers() {
		if server.Voter {
			voters++
		}
	}
	if voters == 0 {
		list = append(list, "this node has not reached the mesh yet: it seeks its members where it knew them; if they have all moved, start it again with --join HOST:PORT of one")
	} else if m.leader() == "" {
		list = append(list, fmt.Sprintf("no leader has been heard from for %s, so what is told of the mesh is as old: more than half of the %d voters must be up; if they are lost for good, see `hopmesh recover --help`",
			m.plan.Silence().Truncate(time.Second), voters))
	}
	if _, in := s.Members[m.id.ID()]; !in {
		list = append(list, "this node is not in the plan yet: it is catching up")
	}
	for id, p := range s.Members {
		if g, ok := m.mesh.Member(id); id != m.id.ID() && (!ok || g.Status != mesh.Alive) {
			dead = append(dead, p.Name)
		}
		if p.Leaving {
			list = append(list, fmt.Sprintf("node %s is leaving", p.Name))
		}
	}
	if len(dead) > 0 {
		slices.Sort(dead)
		list = append(list, fmt.Sprintf("not answering: %s; start it again, or `hopmesh force-leave NAME` if it is gone for good", strings.Join(dead, ", ")))
	}
	if left := time.Until(m.id.NotAfter()); left < 7*24*time.Hour && left < m.id.Life()/4 {
		list = append(list, fmt.Sprintf("this node's certificate ends in %s and could not be renewed: it needs a leader", left.Round(time.Minute)))
	}
	if s.Key.Stale {
		list = append(list, "a node was revoked and the gossip key is being replaced: live nodes that can't be reached hold this up")
	}
	for _, d := range s.Datasets {
		list = append(list, m.datasetProblems(s, d)...)
	}
	for _, j := range s.Jobs {
		if p := m.jobProblem(s, j); p != "" && !m.inLine(s, j) {
			list = append(list, p)
		}
	}
	list = append(list, m.saidHere(s)...)
	v := m.runner.View()
	if v.Unkept != "" {
		list = append(list, unkept(m.id.Name(), v.Job, v.Unkept))
	}
	if v.Broken != "" {
		list = append(list, fmt.Sprintf("job %s is computed on this node's processor: %s", v.Job, v.Broken))
	}
	list = append(list, m.keeper.Problems()...)
	slices.Sort(list)
	return list
}

// Ready lists what must hold for this node to serve.
func (b backend) Ready(context.Context) []api.Check {
	m := b.node.member.Load()
	if m == nil {
		return []api.Check{{Name: "member", Detail: "this node is in no mesh"}}
	}
	s := m.plan.State()
	_, in := s.Members[m.id.ID()]
	leader := m.leader()
	return []api.Check{
		{Name: "member", OK: true, Detail: "mesh " + m.id.MeshID()},
		{Name: "leader", OK: leader != "", Detail: nameOf(s, leader)},
		{Name: "plan", OK: in, Detail: fmt.Sprintf("generation %d", s.Generation)},
	}
}
