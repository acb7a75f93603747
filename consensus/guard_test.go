package consensus

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// faulty is a log whose entries change after they were stored, beneath their checksums.
type faulty struct {
	raft.LogStore
	mu     sync.Mutex
	change func(l *raft.Log)
	hide   bool  // it finds no entry any more
	lacks  error // what the machine lacks
}

func (f *faulty) GetLog(index uint64, l *raft.Log) error {
	err := f.LogStore.GetLog(index, l)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hide {
		return raft.ErrLogNotFound
	}
	if f.lacks != nil {
		return f.lacks
	}
	if err == nil && f.change != nil {
		l.Data = slices.Clone(l.Data)
		f.change(l)
	}
	return err
}

func (f *faulty) set(change func(l *raft.Log)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.change = change
}

func (f *faulty) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hide = true
}

func flip(l *raft.Log) {
	if len(l.Data) > 0 {
		l.Data[len(l.Data)/2] ^= 1
	}
}

// faultyStores puts a faulty log under a node.
func faultyStores() (Stores, *faulty) {
	s := MemoryStores()
	f := &faulty{LogStore: raft.NewInmemStore()}
	s.Log = Sealed(f)
	return s, f
}

// A follower whose disk turns bad stops before it applies what it reads there, and nothing
// panics. The others go on.
func TestDamageUnderARunningFollower(t *testing.T) {
	for name, spoil := range map[string]func(f *faulty){
		"changed": func(f *faulty) { f.set(flip) },
		"lost":    (*faulty).lose,
	} {
		t.Run(name, func(t *testing.T) { damageFollower(t, spoil) })
	}
}

func damageFollower(t *testing.T, spoil func(f *faulty)) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoterCount(15*time.Second, 3)
		c.waitEqual(5 * time.Second)
		l := c.leader()
		n := c.nodes["c"]
		if l == n {
			n = c.nodes["b"]
		}
		n.stop()
		s, f := faultyStores()
		n.stores = s
		if err := l.Release(t.Context(), n.id); err != nil {
			t.Fatal(err)
		}
		n.start(nil)
		c.waitVoterCount(time.Minute, 3)
		spoil(f)
		digest := n.State().Digest()
		c.apply(token(1))
		pass(5 * time.Second)
		if err := n.Err(); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%v", err)
		}
		if n.State().Digest() != digest || n.IsLeader() {
			t.Error("it applied what it could not trust")
		}
		n.stop()
		c.apply(token(2))
	})
}

// A leader whose disk turns bad stops and is followed by another.
func TestDamageUnderARunningLeader(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		s, f := faultyStores()
		first := c.add("a")
		first.stores = s
		first.start(genesis("a"))
		c.leader()
		c.grow("b", "c")
		c.waitVoterCount(15*time.Second, 3)
		c.waitEqual(5 * time.Second)
		a := c.nodes["a"]
		if c.leader() != a {
			t.Fatal("another leads")
		}
		f.set(flip)
		_, _ = a.Apply(t.Context(), token(1))
		pass(5 * time.Second)
		if err := a.Err(); !errors.Is(err, ErrDamaged) || a.IsLeader() {
			t.Fatalf("%v", err)
		}
		a.stop()
		if l := c.leader(); l == a {
			t.Fatal("it still leads")
		}
		c.apply(token(2))
	})
}

// A node that is at rest finds damage, too.
func TestScrub(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		s, f := faultyStores()
		n := c.add("a")
		n.stores = s
		n.start(genesis("a"))
		c.leader()
		pass(scrubEvery + time.Second)
		if n.Err() != nil {
			t.Fatal(n.Err())
		}
		f.set(flip)
		pass(scrubEvery)
		if !errors.Is(n.Err(), ErrDamaged) {
			t.Fatalf("%v", n.Err())
		}
	})
}

// Nodes start only from a log that is whole.
func TestDamageAtTheStart(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		s, f := faultyStores()
		n := c.add("a")
		n.stores = s
		n.start(genesis("a"))
		c.leader()
		n.stop()
		f.set(flip)
		if _, err := Open(n.config(nil)); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%v", err)
		}
		f.set(nil)
		f.lose()
		for _, verified := range []bool{false, true} {
			n.stores.verified = verified // what Raft itself can't start from is damaged, too
			if _, err := Open(n.config(nil)); !errors.Is(err, ErrDamaged) {
				t.Fatalf("%v", err)
			}
		}
	})
}

func (f *faulty) lack(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lacks = err
}

// What a machine lacks is no damage: it is tried again, and a node that can't go on without it ends
// with its log as it was.
func TestShortageIsNoDamage(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		s, f := faultyStores()
		n := c.add("a")
		n.stores = s
		n.start(genesis("a"))
		c.leader()
		f.lack(&os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE})
		pass(scrubEvery + time.Second)
		if n.Err() != nil {
			t.Fatal(n.Err())
		}
		n.stop()
		if _, err := Open(n.config(nil)); err == nil || errors.Is(err, ErrDamaged) {
			t.Fatalf("%v", err)
		}
		time.AfterFunc(time.Second, func() { f.lack(nil) })
		g := guardedLog{s.Log, guard{fail: func(err error) { t.Error(err) }, log: discard(), started: new(atomic.Bool)}}
		if err := g.GetLog(1, new(raft.Log)); err != nil {
			t.Error(err)
		}
		n.start(nil)
		c.leader()
	})
}

// Digests are known of the last states, at their index.
func TestDigests(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		a := c.found("a")
		first := a.State()
		for i := range keptStates - 1 {
			c.apply(token(i))
		}
		if d, known := a.DigestAt(first.Index); !known || d != first.Digest() {
			t.Errorf("%s, %v", d, known)
		}
		c.apply(token(keptStates))
		if _, known := a.DigestAt(first.Index); known {
			t.Error("remembers for ever")
		}
		if _, known := a.DigestAt(a.State().Index + 1); known {
			t.Error("knows what is to come")
		}
	})
}

// Long histories do not pin memory: each state has a copy of its own.
func TestRecentStatesOfLongJobs(t *testing.T) {
	var r recent
	for i := range 2 * keptStates {
		r.add(&plan.State{Index: uint64(i), Jobs: map[string]plan.Job{"j1": {History: make([]plan.Epoch, 10_000)}}})
	}
	held := 0
	for _, s := range r.states {
		if s != nil {
			held += s.Own(new(plan.State))
		}
	}
	if r.kept < fewestStates || held != r.total || held > keptBytes {
		t.Errorf("%d states of %d bytes, counted as %d", r.kept, held, r.total)
	}
	if s, _ := r.find(2*keptStates - 2); s == nil {
		t.Error("the one before is forgotten")
	}
	same := r.states[(r.next+keptStates-1)%keptStates]
	for i := range keptStates {
		next := *same
		next.Index = uint64(1000 + i)
		r.add(&next)
	}
	if r.kept != keptStates {
		t.Errorf("of states that share their history %d are kept", r.kept)
	}
}

// What memory knows better than the disk is written anew.
func TestDamagedLedgerUnderARunningNode(t *testing.T) {
	dir := t.TempDir()
	c := openAlone(t, dir)
	path := filepath.Join(dir, "wal", ledgerName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var said []string
	s := scrubber{stores: c.cfg.Stores, repaired: func(what string) { said = append(said, what) }, log: discard()}
	for range 2 {
		if err := s.once(); err != nil {
			t.Fatal(err)
		}
	}
	if len(said) != 1 {
		t.Errorf("%q", said)
	}
	closeIt(t, c)
	if _, err := reopen(t, dir); err != nil {
		t.Error(err)
	}
}
