package consensus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// roundEvery is the interval of the leader's rounds. They do not depend on hints, which
// may be lost.
const roundEvery = time.Second

var errDeposed = errors.New("this node no longer leads")

// watchLeadership is the only consumer of Raft's leadership channel, which holds just
// the latest value: a second true in a row means that leadership was lost and won
// again. The work of one term ends before that of the next begins.
func (c *Consensus) watchLeadership() {
	stop := func() {}
	defer func() { stop() }()
	for {
		select {
		case leads := <-c.raft.LeaderCh():
			stop()
			stop = func() {}
			if leads {
				stop = c.beginTerm()
			}
			c.changes.fire()
		case <-c.work.ctx.Done():
			return
		}
	}
}

// beginTerm starts the leader's work and returns the function that ends it.
func (c *Consensus) beginTerm() (end func()) {
	c.setTimeouts(beatOfLeaders)
	ctx, cancel := context.WithCancelCause(c.work.ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.lead(ctx) })
	wg.Go(func() { c.spreadCommits(ctx) })
	return func() {
		c.led.Store(time.Now().UnixNano())
		c.setTimeouts(patienceOfFollowers)
		cancel(errDeposed)
		wg.Wait()
	}
}

// setTimeouts changes Raft's timeouts at run time: for a leader the heartbeat interval,
// for a follower the election timeout.
func (c *Consensus) setTimeouts(d time.Duration) {
	conf := c.raft.ReloadableConfig()
	conf.HeartbeatTimeout, conf.ElectionTimeout = d, d
	if err := c.raft.ReloadConfig(conf); err != nil {
		c.cfg.Log.Warn("could not change Raft's timeouts", "err", err)
	}
}

func (c *Consensus) lead(ctx context.Context) {
	tick := time.NewTicker(roundEvery)
	defer tick.Stop()
	for failures := 0; !c.establish(ctx); {
		if failures++; failures == 3 {
			// A leader that cannot begin its term had better be replaced.
			c.cfg.Log.Warn("could not begin to lead; handing over", "err", c.HandOver(ctx))
			failures = 0
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	c.changes.fire()
	watch := newWatch(c.cfg.Health)
	observer := raft.NewObserver(nil, false, watch.mute.observe)
	c.raft.RegisterObserver(observer)
	defer c.raft.DeregisterObserver(observer)
	for ctx.Err() == nil {
		c.arrangeVoters(ctx, watch)
		if c.cfg.Lead != nil {
			c.cfg.Lead(ctx)
		}
		select {
		case <-tick.C:
		case <-c.hint:
		case <-ctx.Done():
		}
	}
}

// establish waits until everything committed before is applied, and writes the
// founder's first entry if there is none. It reports whether that succeeded.
func (c *Consensus) establish(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	term := c.raft.CurrentTerm()
	err := c.Barrier(ctx)
	if err == nil && c.State().MeshID == "" && c.cfg.Genesis != nil {
		_, err = c.propose(ctx, *c.cfg.Genesis)
		if errors.Is(err, plan.ErrFounded) {
			err = nil
		}
	}
	if err != nil {
		c.cfg.Log.Debug("begin to lead", "err", err)
		return false
	}
	c.ready.Store(term)
	return true
}

// spreadCommits follows each burst of changes with a barrier, because followers learn
// that an entry is committed only from a later message.
func (c *Consensus) spreadCommits(ctx context.Context) {
	for {
		select {
		case <-c.spread:
		case <-ctx.Done():
			return
		}
		if len(c.Servers()) < 2 {
			continue
		}
		if err := c.Barrier(ctx); err != nil && ctx.Err() == nil {
			c.cfg.Log.Debug("spread a commit", "err", err)
		}
	}
}

// HandOver transfers leadership to another voter that is alive and not about to leave.
// If this node does not lead, it does nothing. It returns ErrNoSuccessor if there is no
// such voter.
func (c *Consensus) HandOver(ctx context.Context) error { return c.handOver(ctx, c.successors()...) }

// HandOverTo is HandOver to one voter.
func (c *Consensus) HandOverTo(ctx context.Context, id string) error { return c.handOver(ctx, id) }

func (c *Consensus) handOver(ctx context.Context, to ...string) error {
	if c.raft.State() != raft.Leader {
		return nil
	}
	failure := ErrNoSuccessor
	for _, id := range to {
		term := c.raft.CurrentTerm()
		if !c.attempts.may(id, term, time.Now()) {
			failure = fmt.Errorf("hand leadership over: node %s did not take it a moment ago", id)
			continue
		}
		err := c.await(ctx, func() raft.Future {
			return c.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(id))
		})
		if err == nil || c.raft.State() != raft.Leader {
			return nil
		}
		if !errors.Is(err, ErrNotLeader) { // nor is it that another attempt is under way
			c.attempts.failed(id, term, time.Now())
		}
		failure = fmt.Errorf("hand leadership over to node %s: %w", id, err)
		if ctx.Err() != nil {
			break
		}
	}
	return failure
}

// attempts are the handovers of a term that failed. While a follower does not answer, Raft has
// room for one: the next would wait for it and, when leadership is lost meanwhile, for ever
// (hashicorp/raft, leadershipTransfer).
type attempts struct {
	mu   sync.Mutex
	term uint64
	last map[string]time.Time
}

// may reports whether leadership may be handed over to a node now.
func (a *attempts) may(id string, term uint64, now time.Time) bool {
	// By then Raft has heard from the node, or given its question up: it waits for up to ten
	// seconds between questions, and for each step of one.
	const asked = 10*time.Second + 4*rpcTimeout
	a.mu.Lock()
	defer a.mu.Unlock()
	last, in := a.last[id]
	return a.term != term || !in || now.Sub(last) >= asked
}

func (a *attempts) failed(id string, term uint64, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.term != term || a.last == nil {
		a.term, a.last = term, map[string]time.Time{}
	}
	a.last[id] = now
}

// successors lists the voters that could lead, the longest alive first. Raft's own
// choice would be the voter with the longest log, whether alive or not.
func (c *Consensus) successors() []string {
	type voter struct {
		id    string
		since time.Duration
	}
	var list []voter
	members := c.State().Members
	for _, s := range c.Servers() {
		if !s.Voter || s.ID == c.cfg.ID {
			continue
		}
		m, in := members[s.ID]
		if alive, since := c.cfg.Health(s.ID); alive && in && !m.Leaving {
			list = append(list, voter{s.ID, since})
		}
	}
	slices.SortFunc(list, func(a, b voter) int { return cmp.Or(cmp.Compare(b.since, a.since), cmp.Compare(a.id, b.id)) })
	ids := make([]string, len(list))
	for i, v := range list {
		ids[i] = v.id
	}
	return ids
}
