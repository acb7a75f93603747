package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/hopmesh/hopmesh/node/lead"
	"github.com/hopmesh/hopmesh/node/wording"
)

// callLive is the call that asks a node for the progress of a job that it runs.
const callLive = "job-progress"

// live is a node's report on a job that it runs.
type live struct {
	Runs     bool           `json:"runs"`
	Progress train.Progress `json:"progress"`
	Notes    []string       `json:"notes"`
	// Waits are long waits for other nodes of the job. Apart are sentences about the
	// nodes that the leader leaves out; a leader reports them even if it does not run the
	// job.
	Waits    []wait   `json:"waits,omitempty"`
	Apart    []string `json:"apart,omitempty"`
	Diverged []string `json:"diverged,omitempty"` // as in the plan
	Unkept   string   `json:"unkept,omitempty"`   // why it keeps no checkpoint, if it can't
	// Programless means that the job waits for its program on the node.
	Programless bool `json:"programless,omitempty"`
	// Memory is what the job takes or took on the node, whether it runs or not.
	Memory *jobs.Memory `json:"memory,omitempty"`
}

// liveHere is this node's report.
func (c *Jobs) liveHere(id string) live {
	j := c.cfg.Plan.State().Jobs[id]
	l := live{Apart: c.cfg.Apart.Why(j.Dataset)}
	if m, known := c.cfg.Runner.Memory(id); known {
		l.Memory = &m
	}
	if v := c.cfg.Runner.View(); v.Job == id {
		l.Runs, l.Progress, l.Notes, l.Diverged, l.Unkept, l.Waits = true, v.Progress, v.Notes, v.Diverged, v.Unkept, c.waitsHere(j)
		l.Programless = v.Programless
	}
	return l
}

// liveTimeout bounds how long nodes that do not answer may delay the view of a job.
const liveTimeout = time.Second

// liveOf returns the report of the node that runs a job or, if nodes share it, of the first
// that answers: this one, if it is among them. The report is empty if none does.
func (c *Jobs) liveOf(ctx context.Context, j plan.Job) live {
	if j.State != plan.Running {
		return live{}
	}
	if slices.Contains(j.Nodes, c.cfg.Mesh.ID()) {
		if l := c.liveHere(j.ID); l.Runs {
			return l
		}
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	for _, node := range j.Nodes {
		if node == c.cfg.Mesh.ID() || !c.cfg.Answers(node) {
			continue
		}
		if l := c.liveAt(ctx, node, j); l.Runs {
			return l
		}
	}
	return live{}
}

func unkept(node, job, why string) string {
	return fmt.Sprintf("node %s keeps no checkpoint of job %s: %s: free some space in its data directory, and it keeps the next", node, job, why)
}

func programless(node, job string) string {
	return fmt.Sprintf("job %s waits for its program on node %s: start the script there, or see there why it has ended", job, node)
}

func (c *Jobs) liveAt(ctx context.Context, node string, j plan.Job) live {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout/2) // another may answer
	defer cancel()
	var l live
	b, err := c.cfg.Mesh.Call(ctx, node, callLive, []byte(j.ID))
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		c.cfg.Log.Debug("ask how far a job is", "job", j.ID, "node", node, "err", err)
		return live{}
	}
	return l
}

// serveLive answers callLive to other members.
func (c *Jobs) serveLive(_ context.Context, peer string, b []byte) ([]byte, error) {
	if _, in := c.cfg.Plan.State().Members[peer]; !in {
		return nil, mesh.Refuse(lead.Invalid, "node %s is no member", peer)
	}
	return json.Marshal(c.liveHere(string(b)))
}

// wait is a node's long wait for an answer of another one.
type wait struct {
	From    string  `json:"from"` // the node that waits, by its id
	On      string  `json:"on"`
	What    string  `json:"what"` // it asked for
	Seconds float64 `json:"seconds"`
	Lost    bool    `json:"lost"` // it can't reach the other one
}

// waitsHere lists the waits of this node in a job.
func (c *Jobs) waitsHere(j plan.Job) (list []wait) {
	for _, w := range c.cfg.Waits(j.Key) {
		list = append(list, wait{c.cfg.Mesh.ID(), w.Node, w.What, w.For.Seconds(), w.Lost})
	}
	return list
}

// sentences describes waits, the longest first, because they explain others. If nodes
// can't reach each other, only those waits are listed. Nodes that gossip sees as dead are
// reported elsewhere.
func (c *Jobs) sentences(s *plan.State, waits []wait) (list []string) {
	waits = slices.DeleteFunc(slices.Clone(waits), func(w wait) bool { return !c.cfg.Answers(w.On) })
	if slices.ContainsFunc(waits, func(w wait) bool { return w.Lost }) {
		waits = slices.DeleteFunc(waits, func(w wait) bool { return !w.Lost })
	}
	slices.SortFunc(waits, func(a, b wait) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.From, b.From), cmp.Compare(a.On, b.On))
	})
	for _, w := range waits {
		from, on := s.NameOf(w.From), s.NameOf(w.On)
		advice := fmt.Sprintf("it is slow, or waits itself, as `hopmesh status` on node %s says; else check the network between the two", on)
		if w.Lost {
			advice = "check the network between the two"
		}
		list = append(list, fmt.Sprintf("node %s has not answered node %s's question for %s for %d s: %s", on, from, w.What, int(w.Seconds), advice))
	}
	return list
}

// A said is the reports of some nodes on a job.
type said struct {
	nodes []string
	all   []live
}

// ask asks the nodes that share a job for their reports and, while it runs, the leader.
func (c *Jobs) ask(ctx context.Context, j plan.Job) said {
	nodes := j.Nodes
	if leader := c.cfg.Plan.Leader(); j.State == plan.Running && j.Shared() && leader != "" && !slices.Contains(nodes, leader) {
		nodes = append(slices.Clone(nodes), leader)
	}
	of := said{nodes, make([]live, len(nodes))}
	var wg sync.WaitGroup
	for i, n := range nodes {
		switch {
		case n == c.cfg.Mesh.ID():
			of.all[i] = c.liveHere(j.ID)
		case c.cfg.Answers(n):
			wg.Go(func() { of.all[i] = c.liveAt(ctx, n, j) })
		}
	}
	wg.Wait()
	return of
}

// memory returns the memory of the node on which a job took most; nil: none knows.
func (s *said) memory() *api.JobMemory {
	var most *api.JobMemory
	for _, l := range s.all {
		if m := l.Memory; m != nil && (most == nil || m.Taken > most.Taken) {
			most = &api.JobMemory{Forecast: m.Forecast, Taken: m.Taken, FellBack: []string{}}
			for _, text := range m.FellBack {
				most.FellBack = append(most.FellBack, wording.Text(text))
			}
		}
	}
	return most
}

// sentencesOf returns what keeps a job from going on or from being saved.
func (c *Jobs) sentencesOf(s *plan.State, j plan.Job, of said) []string {
	if j.State != plan.Running {
		return nil
	}
	var waits []wait
	var others []string
	for i, l := range of.all {
		for _, w := range l.Waits {
			if _, in := s.Members[w.On]; in && w.From == of.nodes[i] {
				waits = append(waits, w)
			}
		}
		others = append(others, l.Apart...)
		if l.Unkept != "" {
			others = append(others, unkept(s.NameOf(of.nodes[i]), j.ID, l.Unkept))
		}
		if l.Programless {
			others = append(others, programless(s.NameOf(of.nodes[i]), j.ID))
		}
	}
	return append(c.sentences(s, waits), others...)
}

// saidHere is what this node alone says of jobs, for its own status.
func (c *Jobs) saidHere(s *plan.State) (list []string) {
	for _, j := range s.Jobs {
		if j.State != plan.Running || !j.Shared() {
			continue
		}
		l := c.liveHere(j.ID)
		list = append(append(list, c.sentences(s, l.Waits)...), l.Apart...)
	}
	return list
}
