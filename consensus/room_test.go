package consensus

import (
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

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

// cramp starts a node again, on a disk that may be full.
func (n *node) cramp() *cramped {
	n.stop()
	disk := &cramped{StableStore: n.stores.Stable}
	n.stores.Stable = disk
	n.start(nil)
	n.cluster.waitEqual(time.Minute)
	return disk
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
			disk := n.cramp()
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
		disk := n.cramp()
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
		disk := n.cramp()
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

// Half a vote does not count: the candidate of the vote before does not get it.
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
