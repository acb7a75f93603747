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
