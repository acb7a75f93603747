package chaos

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus"
)

// A ledger remembers what was ever written to the logs of all nodes. Entries of one index
// and term are the same everywhere, unless two nodes led in that term.
type ledger struct {
	mu      sync.Mutex
	entries map[place][sha256.Size]byte
	wrong   error
}

type place struct{ index, term uint64 }

func newLedger() *ledger { return &ledger{entries: map[place][sha256.Size]byte{}} }

// watch returns stores that tell the ledger what is written to them.
func (l *ledger) watch(name string, s consensus.Stores) consensus.Stores {
	s.Log = watched{s.Log, name, l}
	return s
}

type watched struct {
	raft.LogStore
	name   string
	ledger *ledger
}

// IsMonotonic says what the log under it says.
func (w watched) IsMonotonic() bool {
	m, ok := w.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

func (w watched) StoreLog(e *raft.Log) error { return w.StoreLogs([]*raft.Log{e}) }

func (w watched) StoreLogs(list []*raft.Log) error {
	for _, e := range list {
		w.ledger.add(w.name, e)
	}
	return w.LogStore.StoreLogs(list)
}

func (l *ledger) add(name string, e *raft.Log) {
	sum := sha256.Sum256(append([]byte{byte(e.Type)}, e.Data...))
	l.mu.Lock()
	defer l.mu.Unlock()
	was, ok := l.entries[place{e.Index, e.Term}]
	switch {
	case !ok:
		l.entries[place{e.Index, e.Term}] = sum
	case was != sum && l.wrong == nil:
		l.wrong = fmt.Errorf("entry %d of term %d is another one on %s: two nodes led in that term", e.Index, e.Term, name)
	}
}

// err returns an error if two nodes led in one term.
func (l *ledger) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrong
}
