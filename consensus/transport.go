package consensus

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// cautious is Raft's transport, by which a node commits only what the sender's message vouches for:
// what comes before its entries, and these. Raft itself commits up to its own last entry, which may
// contradict the leader's, if it could not be taken away or replaced.
//
// By it a node also votes for whoever has the newest log, as Raft was proved, even if it has missed
// how that one became a voter. Raft itself would refuse: of four voters, one lost and one that
// lags so, the two others might never lead again.
type cautious struct {
	*raft.NetworkTransport
	raft    atomic.Pointer[raft.Raft] // nil until it has started
	rpcs    chan raft.RPC
	ended   chan struct{}
	end     sync.Once
	running sync.WaitGroup
}

func newCautious(t *raft.NetworkTransport) *cautious {
	c := &cautious{NetworkTransport: t, rpcs: make(chan raft.RPC), ended: make(chan struct{})}
	c.running.Go(c.pass)
	return c
}

// Consumer returns the messages for Raft.
func (c *cautious) Consumer() <-chan raft.RPC { return c.rpcs }

// pass passes on messages until the transport is closed.
func (c *cautious) pass() {
	for {
		select {
		case rpc := <-c.NetworkTransport.Consumer():
			c.change(rpc.Command)
			select {
			case c.rpcs <- rpc:
			case <-c.ended:
				rpc.Respond(nil, raft.ErrTransportShutdown)
				return
			}
		case <-c.ended:
			return
		}
	}
}

// change makes a message one that Raft treats rightly.
func (c *cautious) change(message any) {
	switch m := message.(type) {
	case *raft.AppendEntriesRequest:
		m.LeaderCommitIndex = min(m.LeaderCommitIndex, m.PrevLogEntry+uint64(len(m.Entries)))
	case *raft.RequestVoteRequest:
		m.ID = nil // then Raft does not look it up; it replies to the address
	case *raft.RequestPreVoteRequest:
		// Here Raft looks up whatever stands there, and does nothing else with it.
		if r := c.raft.Load(); r != nil {
			m.ID = voterOf(r.GetConfiguration().Configuration(), m.ID)
		}
	}
}

// RequestVote asks a node for its vote.
func (c *cautious) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	return freshly(func() error { return c.NetworkTransport.RequestVote(id, target, args, resp) })
}

// RequestPreVote asks a node whether it would vote for this one.
func (c *cautious) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return freshly(func() error { return c.NetworkTransport.RequestPreVote(id, target, args, resp) })
}

// freshly repeats a question that fails at once, until Raft has used up the streams that it keeps to a
// node and opens a new one. Those to a node that was restarted since are of no use any more, and an
// election that fails by them has to wait a second or two for the next. The answer to a question for a
// vote is the same when it is repeated.
func freshly(ask func() error) (err error) {
	for range keptStreams + 1 {
		began := time.Now()
		if err = ask(); err == nil || time.Since(began) > rpcTimeout/10 {
			return err
		}
	}
	return err
}

// voterOf returns id if it may vote, else the id of any that may, else id.
func voterOf(c raft.Configuration, id []byte) []byte {
	other := id
	for _, s := range c.Servers {
		switch {
		case s.Suffrage != raft.Voter:
		case s.ID == raft.ServerID(id):
			return id
		default:
			other = []byte(s.ID)
		}
	}
	return other
}

// Close ends the transport.
func (c *cautious) Close() error {
	c.end.Do(func() { close(c.ended) })
	err := c.NetworkTransport.Close()
	c.running.Wait()
	if errors.Is(err, raft.ErrTransportShutdown) {
		return nil
	}
	return err
}
