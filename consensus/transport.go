package consensus

import (
	"errors"
	"sync"

	"github.com/hashicorp/raft"
)

// cautious is Raft's transport, by which a node commits only what the sender's message vouches for:
// what comes before its entries, and these. Raft itself commits up to its own last entry, which may
// contradict the leader's, if it could not be taken away or replaced.
type cautious struct {
	*raft.NetworkTransport
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
			if a, is := rpc.Command.(*raft.AppendEntriesRequest); is {
				a.LeaderCommitIndex = min(a.LeaderCommitIndex, a.PrevLogEntry+uint64(len(a.Entries)))
			}
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
