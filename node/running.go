package node

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/jobs"
)

// running is what the runner of jobs needs of the rest of the node.
type running struct{ *member }

func (r running) Commit(ctx context.Context, c plan.CommitEpochs) error {
	return refusedFor(r.atLeader(ctx, opCommitEpochs, c, nil))
}

func (r running) Finish(ctx context.Context, c plan.FinishJob) error {
	return refusedFor(r.atLeader(ctx, opFinishJob, c, nil))
}

func (r running) Renew(ctx context.Context, w jobs.Renewal) (renewed bool, err error) {
	err = refusedFor(r.atLeader(ctx, opRenewJob, renewOrder{w, r.opts.Version}, &renewed))
	return renewed, err
}

func (r running) Index(ctx context.Context) (uint64, error) { return keeping(r).Index(ctx) }

// refusedFor tells the runner that saying it again is of no use.
func refusedFor(err error) error {
	if mesh.RefusalOf(err) == reasonConflict {
		return fmt.Errorf("%w: %w", jobs.ErrRefused, err)
	}
	return err
}

// openRunner makes what runs jobs here.
func (m *member) openRunner() *jobs.Runner {
	return jobs.Open(jobs.Config{
		Dir: m.dir.jobs(), Self: m.id.ID(), Memory: m.opts.Memory, Device: m.opts.computes(), Shard: m.shardFile, Leader: running{m}, Train: m.opts.Train, Log: m.log,
		Peers: m.jobPeers, Strategies: strategies,
	})
}

// shardFile is where a shard lies that this node holds.
func (m *member) shardFile(dataset string, shard int) string {
	return filepath.Join(m.dir.datasets(), dataset, graph.ShardFile(shard))
}

// live is what a node says of a job that it runs.
type live struct {
	Runs     bool           `json:"runs"`
	Progress train.Progress `json:"progress"`
	Notes    []string       `json:"notes"`
	// Waits are for other nodes of the job, for long already. Apart are sentences on those
	// that the leader leaves out; a leader that does not run the job tells them too.
	Waits    []wait   `json:"waits,omitempty"`
	Apart    []string `json:"apart,omitempty"`
	Diverged []string `json:"diverged,omitempty"` // as in the plan
	Unkept   string   `json:"unkept,omitempty"`   // why it keeps no checkpoint, if it can't
}

// liveHere answers for this node.
func (m *member) liveHere(id string) live {
	j := m.plan.State().Jobs[id]
	l := live{Apart: m.apartFrom(j)}
	if v := m.runner.View(); v.Job == id {
		l.Runs, l.Progress, l.Notes, l.Diverged, l.Unkept, l.Waits = true, v.Progress, v.Notes, v.Diverged, v.Unkept, m.waitsHere(j)
	}
	return l
}

// liveTimeout bounds how long a node that does not answer may hold up who looks at
// a job.
const liveTimeout = time.Second

// liveOf asks the node that runs a job or, of those that share it, the first that
// knows: this one, if it is among them. Nothing is known if none answers.
func (m *member) liveOf(ctx context.Context, j plan.Job) live {
	if j.State != plan.Running {
		return live{}
	}
	if slices.Contains(j.Nodes, m.id.ID()) {
		if l := m.liveHere(j.ID); l.Runs {
			return l
		}
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	for _, node := range j.Nodes {
		if node == m.id.ID() || !m.answers(node) {
			continue
		}
		if l := m.liveAt(ctx, node, j); l.Runs {
			return l
		}
	}
	return live{}
}

func unkept(node, job, why string) string {
	return fmt.Sprintf("node %s keeps no checkpoint of job %s: %s: free some space in its data directory, and it keeps the next", node, job, why)
}

func (m *member) liveAt(ctx context.Context, node string, j plan.Job) live {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout/2) // another may answer
	defer cancel()
	var l live
	b, err := m.mesh.Call(ctx, node, callLive, []byte(j.ID))
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		m.log.Debug("ask how far a job is", "job", j.ID, "node", node, "err", err)
		return live{}
	}
	return l
}

// serveJobs registers what other nodes ask of the runner.
func (m *member) serveJobs() {
	m.mesh.Handle(callLive, func(_ context.Context, peer string, b []byte) ([]byte, error) {
		if _, in := m.plan.State().Members[peer]; !in {
			return nil, mesh.Refuse(reasonInvalid, "node %s is no member", peer)
		}
		return json.Marshal(m.liveHere(string(b)))
	})
}
