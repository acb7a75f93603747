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

// cramped is a stable store on a disk that may be full.
type cramped struct {
	raft.StableStore
	full  atomic.Bool
	tried atomic.Int64 // how often it had no room
}

func (c *cramped) Set(key, value []byte) error {
	if c.full.Load() {
		c.tried.Add(1)
		return syscall.ENOSPC
	}
	return c.StableStore.Set(key, value)
}

func (c *cramped) SetUint64(key []byte, value uint64) error {
	if c.full.Load() {
		c.tried.Add(1)
		return syscall.ENOSPC
	}
	return c.StableStore.SetUint64(key, value)
}

// A voter that has no room for its vote does not vote, and waits for room: it goes on by itself, and
// can be stopped meanwhile.
func TestVoterWithoutRoomForItsVote(t *testing.T) {
	for _, stops := range []bool{false, true} {
		virtual(t, func(t *testing.T, c *cluster) {
			c.found("a")
			c.grow("b", "c")
			c.waitVoterCount(15*time.Second, 3)
			first := c.leader()
			var others []*node
			for _, n := range c.nodes {
				if n != first {
					others = append(others, n)
				}
			}
			n, third := others[0], others[1]
			n.stop()
			disk := &cramped{StableStore: n.stores.Stable}
			n.stores.Stable = disk
			n.start(nil)
			c.waitEqual(time.Minute)
			disk.full.Store(true)
			first.kill()
			pass(time.Minute)
			if n.Lack() == nil || n.Err() != nil {
				t.Fatalf("it lacks %v, and has ended by %v", n.Lack(), n.Err())
			}
			if third.IsLeader() || n.IsLeader() {
				t.Error("it has promised what it can't keep")
			}
			if stops {
				n.stop() // fails the test if that takes long
				return
			}
			disk.full.Store(false)
			c.leader()
			if n.Lack() != nil {
				t.Error(n.Lack())
			}
		})
	}
}

// A node starts on a full disk, and follows: it promises nothing new.
func TestStartWithoutRoom(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c")
		c.waitVoterCount(15*time.Second, 3)
		n := c.nodes["b"]
		if n.IsLeader() {
			n = c.nodes["c"]
		}
		n.stop()
		disk := &cramped{StableStore: n.stores.Stable}
		disk.full.Store(true)
		n.stores.Stable = disk
		n.start(nil)
		c.waitEqual(time.Minute)
		if n.Lack() != nil || n.Err() != nil || disk.tried.Load() == 0 {
			t.Errorf("it lacks %v, has ended by %v, and has tried %d times to store what it had", n.Lack(), n.Err(), disk.tried.Load())
		}
	})
}

// While a voter has no room for the term of a new leader, it does not wait once for each of that one's
// heartbeats. It follows the leader once there is room.
func TestVoterWithoutRoomForTheTerm(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c", "d", "e")
		c.waitVoterCount(time.Minute, 5)
		first := c.leader()
		var n *node
		for _, n = range c.nodes {
			if n != first {
				break
			}
		}
		n.stop()
		disk := &cramped{StableStore: n.stores.Stable}
		n.stores.Stable = disk
		n.start(nil)
		c.waitEqual(time.Minute)
		disk.full.Store(true)
		first.kill()
		pass(10 * time.Minute)
		if n.Lack() == nil || n.Err() != nil {
			t.Fatalf("it lacks %v, and has ended by %v", n.Lack(), n.Err())
		}
		const seconds = 10
		before := disk.tried.Load()
		pass(seconds * time.Second)
		if tried := disk.tried.Load() - before; tried > seconds*int64(time.Second/shortagePause)+2*seconds {
			t.Errorf("it tried %d times in %d s", tried, seconds)
		}
		disk.full.Store(false)
		c.leader()
		c.waitEqual(time.Minute)
		if n.Lack() != nil {
			t.Error(n.Lack())
		}
	})
}

// A voter that has no room for the term is replaced, though gossip sees it alive. Once there is room
// it may vote again.
func TestVoterWithoutRoomIsReplaced(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		c.found("a")
		c.grow("b", "c", "d", "e", "f", "g")
		c.waitVoterCount(time.Minute, 5)
		first := c.leader()
		var n *node
		for _, id := range first.voters() {
			if n = c.nodes[id]; n != first {
				break
			}
		}
		n.stop()
		disk := &cramped{StableStore: n.stores.Stable}
		n.stores.Stable = disk
		n.start(nil)
		c.waitEqual(time.Minute)
		disk.full.Store(true)
		first.kill()
		var others []*node
		for _, o := range c.running() {
			if o != n {
				others = append(others, o)
			}
		}
		c.wait("a voter in place of the one without room", 2*time.Minute, func() bool {
			voters := c.leaderIn(others).voters()
			return len(voters) == 5 && !slices.Contains(voters, n.id) && !slices.Contains(voters, first.id)
		})
		if n.Lack() == nil {
			t.Error("it lacks nothing")
		}
		disk.full.Store(false)
		c.leaderIn(others).stop()
		c.wait("five voters again", 2*time.Minute, func() bool { return slices.Contains(c.leader().voters(), n.id) })
	})
}

// brief is a stable store that takes one value more.
type brief struct {
	*cramped
}

func (b brief) Set(key, value []byte) error {
	defer b.full.Store(true)
	return b.cramped.Set(key, value)
}

func (b brief) SetUint64(key []byte, value uint64) error {
	defer b.full.Store(true)
	return b.cramped.SetUint64(key, value)
}

// Half a vote is none: it gives nobody the vote who had the one before.
func TestHalfAVote(t *testing.T) {
	stable := MemoryStores().Stable
	started := new(atomic.Bool)
	started.Store(true)
	vote := func(s raft.StableStore, term uint64, candidate string) (whole bool) {
		g := &guardedStable{StableStore: s, guard: guard{fail: func(err error) { t.Error(err) }, log: discard(), started: started, lack: new(atomic.Pointer[error])}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := errors.Join(g.SetUint64([]byte(voteTerm), term), g.Set([]byte(voteCandidate), []byte(candidate))); err != nil {
				t.Error(err)
			}
			whole = true
		}()
		<-done
		return whole
	}
	stored := func() (uint64, string) {
		term, err := stable.GetUint64([]byte(voteTerm))
		candidate, and := stable.Get([]byte(voteCandidate))
		if err != nil || and != nil {
			t.Fatal(err, and)
		}
		return term, string(candidate)
	}
	if !vote(stable, 5, "a") {
		t.Fatal("it has not voted")
	}
	if term, candidate := stored(); term != 5 || candidate != "a" {
		t.Errorf("it has voted for %s in term %d", candidate, term)
	}
	if vote(brief{&cramped{StableStore: stable}}, 7, "b") {
		t.Fatal("it has voted")
	}
	if term, candidate := stored(); term == 7 {
		t.Errorf("it says that it has voted for %s in term %d", candidate, term)
	}
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
