package consensus

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

const (
	// changeTimeout bounds one change of the voters, including probes and preparation.
	changeTimeout = 10 * time.Second
	// probeTimeout bounds how long a node may take to answer a probe.
	probeTimeout = time.Second
	// maxProbes is how many nodes are probed at once. At most five will vote.
	maxProbes = 8
	// maxLag is how many entries behind still counts as caught up: as many as one Raft
	// message carries.
	maxLag = 64
	// muteAfter is how long a node that gossip sees alive may not answer heartbeats before it counts
	// as failed.
	muteAfter = 10 * time.Second
)

// arrangeVoters makes at most one change of Raft's configuration. If it made one, it
// requests the next round soon.
func (c *Consensus) arrangeVoters(ctx context.Context, w *watch) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	state, servers := c.State(), c.Servers()
	health := w.look(state, servers, c.cfg.ID, time.Now())
	change, due := plan.NextChange(state, servers, c.cfg.ID, health)
	if due && change.Action == plan.Promote {
		// Until here every live node was assumed to be caught up. Now it matters, so
		// ask.
		c.probe(ctx, servers, health)
		change, due = plan.NextChange(state, servers, c.cfg.ID, health)
	}
	if !due {
		return
	}
	log := c.cfg.Log.With("change", string(change.Action), "id", change.ID, "why", change.Why)
	if err := c.change(ctx, change); err != nil {
		if ctx.Err() == nil && !errors.Is(err, ErrNotLeader) {
			log.Warn("could not change the voters; trying again", "err", err)
		}
		return
	}
	log.Info("changed who takes part in decisions")
	c.changes.fire()
	c.Hint()
}

func (c *Consensus) change(ctx context.Context, change plan.Change) error {
	id, addr := raft.ServerID(change.ID), raft.ServerAddress(change.ID)
	switch change.Action {
	case plan.AddNonvoter:
		return c.await(ctx, func() raft.Future { return c.raft.AddNonvoter(id, addr, 0, patience(ctx)) })
	case plan.Promote:
		if c.cfg.BeforePromote != nil {
			if err := c.cfg.BeforePromote(ctx, change.ID); err != nil {
				return err
			}
		}
		return c.await(ctx, func() raft.Future { return c.raft.AddVoter(id, addr, 0, patience(ctx)) })
	case plan.Demote:
		return c.await(ctx, func() raft.Future { return c.raft.DemoteVoter(id, 0, patience(ctx)) })
	case plan.Remove:
		return c.await(ctx, func() raft.Future { return c.raft.RemoveServer(id, 0, patience(ctx)) })
	}
	return c.HandOver(ctx) // for plan.Transfer
}

// Release takes a node that has lost what it promised out of Raft's configuration, and returns
// once most of the other voters know. From then on it may come back with an empty log, as a
// newcomer: whatever it acknowledged before counts no more. It returns an error unless this node
// leads.
func (c *Consensus) Release(ctx context.Context, id string) error {
	if !c.IsLeader() || id == c.cfg.ID {
		return ErrNotLeader
	}
	for _, s := range c.Servers() {
		if s.ID == id {
			c.cfg.Log.Warn("a node lost its part of the plan's log; it is taken out until it comes back", "id", id)
			return c.await(ctx, func() raft.Future { return c.raft.RemoveServer(raft.ServerID(id), 0, patience(ctx)) })
		}
	}
	// What removed it may be committed no more than here.
	return c.Barrier(ctx)
}

// probe asks the live non-voters for their applied index. Those that lag, do not answer
// or were not asked do not count as caught up.
func (c *Consensus) probe(ctx context.Context, servers []plan.Server, health map[string]plan.Health) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	committed := c.raft.CommitIndex()
	var asked []string
	for _, s := range servers {
		h := health[s.ID]
		if s.Voter || !h.Alive {
			continue
		}
		h.CaughtUp = false
		health[s.ID] = h
		if len(asked) < maxProbes {
			asked = append(asked, s.ID)
		}
	}
	caughtUp := make([]bool, len(asked))
	var wg sync.WaitGroup
	for i, id := range asked {
		wg.Go(func() {
			applied, err := c.cfg.Probe(ctx, id)
			caughtUp[i] = err == nil && applied+maxLag >= committed
		})
	}
	wg.Wait()
	for i, id := range asked {
		h := health[id]
		h.CaughtUp = caughtUp[i]
		health[id] = h
	}
}

// watch records how long one leader has seen the other nodes alive or failed. Gossip
// may not know a node that failed before this one started; such a node counts as failed
// since this leader first looked.
type watch struct {
	health func(id string) (alive bool, since time.Duration)
	down   map[string]time.Time
	mute   mute
}

func newWatch(health func(string) (bool, time.Duration)) *watch {
	return &watch{health: health, down: map[string]time.Time{}, mute: mute{last: map[string]time.Time{}}}
}

// mute has the voters that do not answer this leader's heartbeats, with when they last did. Gossip may
// see them alive: a node without room for its term takes no part in Raft, and is to be replaced.
type mute struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// observe is a filter of Raft's observations. It forwards none.
func (m *mute) observe(o *raft.Observation) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch of := o.Data.(type) {
	case raft.FailedHeartbeatObservation:
		m.last[string(of.PeerID)] = of.LastContact
	case raft.ResumedHeartbeatObservation:
		delete(m.last, string(of.PeerID))
	case raft.PeerObservation: // it is removed, or added again
		delete(m.last, string(of.Peer.ID))
	}
	return false
}

// keep forgets all nodes but voters. The others are sent nothing, or come back after they were away:
// only a vote can be replaced.
func (m *mute) keep(servers []plan.Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.last, func(id string, _ time.Time) bool {
		return !slices.Contains(servers, plan.Server{ID: id, Voter: true})
	})
}

// silence returns how long a node has not answered; 0: it has.
func (m *mute) silence(id string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, is := m.last[id]; is {
		return now.Sub(last)
	}
	return 0
}

// look assumes that every live node is caught up; see probe.
func (w *watch) look(state *plan.State, servers []plan.Server, self string, now time.Time) map[string]plan.Health {
	ids := map[string]bool{}
	for id := range state.Members {
		ids[id] = true
	}
	for _, s := range servers {
		ids[s.ID] = true
	}
	delete(ids, self)
	w.mute.keep(servers)
	all := make(map[string]plan.Health, len(ids))
	down := map[string]time.Time{}
	for id := range ids {
		alive, since := w.health(id)
		if silence := w.mute.silence(id, now); alive && silence >= muteAfter {
			alive, since = false, silence
		}
		if !alive {
			first, before := w.down[id]
			if !before {
				first = now
			}
			down[id] = first
			since = max(since, now.Sub(first))
		}
		all[id] = plan.Health{Alive: alive, Since: since, CaughtUp: alive}
	}
	w.down = down
	return all
}
