package consensus

import (
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// A message vouches for its entries and for what comes before them, and for nothing after.
func TestCommitsWhatAMessageVouchesFor(t *testing.T) {
	open := func() *raft.NetworkTransport {
		n, err := raft.NewTCPTransport("127.0.0.1:0", nil, 1, time.Second, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	from, to := open(), newCautious(open())
	defer func() { _ = from.Close() }()
	for _, c := range []struct {
		prev, commit uint64
		entries      int
		want         uint64
	}{{33, 110, 64, 97}, {97, 99, 3, 99}, {99, 110, 0, 99}, {0, 0, 0, 0}, {10, 4, 2, 4}} {
		got := make(chan uint64, 1)
		go func() {
			rpc := <-to.Consumer()
			a := rpc.Command.(*raft.AppendEntriesRequest)
			got <- a.LeaderCommitIndex
			rpc.Respond(&raft.AppendEntriesResponse{}, nil)
		}()
		request := &raft.AppendEntriesRequest{PrevLogEntry: c.prev, LeaderCommitIndex: c.commit, Entries: entriesOf(1, c.prev+1, c.prev+uint64(c.entries))}
		if err := from.AppendEntries("b", to.LocalAddr(), request, &raft.AppendEntriesResponse{}); err != nil {
			t.Fatal(err)
		}
		if commit := <-got; commit != c.want {
			t.Errorf("%+v: %d is committed", c, commit)
		}
	}
	if err := to.Close(); err != nil {
		t.Error(err)
	}
	if err := to.Close(); err != nil {
		t.Error(err)
	}
}

// An election does not fail by the streams to a process that was replaced.
func TestVotesOfARestartedNode(t *testing.T) {
	open := func(at string) *raft.NetworkTransport {
		n, err := raft.NewTCPTransport(at, nil, keptStreams, time.Second, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	from, to := newCautious(open("127.0.0.1:0")), open("127.0.0.1:0")
	defer func() { _ = from.Close() }()
	at := to.LocalAddr()
	// All are asked before one is answered, so that each has a stream.
	asked := make(chan error)
	for range keptStreams {
		go func() {
			asked <- from.AppendEntries("b", at, new(raft.AppendEntriesRequest), new(raft.AppendEntriesResponse))
		}()
	}
	var rpcs []raft.RPC
	for range keptStreams {
		rpcs = append(rpcs, <-to.Consumer())
	}
	for _, rpc := range rpcs {
		rpc.Respond(new(raft.AppendEntriesResponse), nil)
	}
	for range keptStreams {
		if err := <-asked; err != nil {
			t.Fatal(err)
		}
	}
	for _, ask := range []func() (granted bool, err error){
		func() (bool, error) {
			resp := new(raft.RequestPreVoteResponse)
			err := from.RequestPreVote("b", at, new(raft.RequestPreVoteRequest), resp)
			return resp.Granted, err
		},
		func() (bool, error) {
			resp := new(raft.RequestVoteResponse)
			err := from.RequestVote("b", at, new(raft.RequestVoteRequest), resp)
			return resp.Granted, err
		},
	} {
		to.CloseStreams() // as those of a process end with it
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
		to = open(string(at))
		go func() {
			rpc := <-to.Consumer()
			switch rpc.Command.(type) {
			case *raft.RequestPreVoteRequest:
				rpc.Respond(&raft.RequestPreVoteResponse{Granted: true}, nil)
			case *raft.RequestVoteRequest:
				rpc.Respond(&raft.RequestVoteResponse{Granted: true}, nil)
			}
		}()
		if granted, err := ask(); err != nil || !granted {
			t.Errorf("it grants %v, %v", granted, err)
		}
	}
	if err := to.Close(); err != nil {
		t.Error(err)
	}
	if err := from.RequestVote("b", at, new(raft.RequestVoteRequest), new(raft.RequestVoteResponse)); err == nil {
		t.Error("one that does not run votes")
	}
}
