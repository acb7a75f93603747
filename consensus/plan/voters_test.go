package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is a model of what NextChange sees: the plan, Raft's configuration, and
// who is up. It plays the leader and Raft.
type world struct {
	t       *testing.T
	state   *State
	servers map[string]bool // voter?
	health  map[string]Health
	leader  string
	log     []string
}

const (
	settled = time.Hour
	justNow = time.Second
)

// newWorld has members called a, b, c..., all up; the first so many vote, a leads.
func newWorld(t *testing.T, members, voters int) *world {
	w := &world{t: t, state: &State{MeshID: "m", Members: map[string]Member{}}, servers: map[string]bool{}, health: map[string]Health{}, leader: "a"}
	for i := range members {
		id := string(rune('a' + i))
		w.join(id)
		w.servers[id] = i < voters
		w.health[id] = Health{Alive: true, Since: settled, CaughtUp: true}
	}
	return w
}

func (w *world) join(id string) {
	w.state.Members[id] = Member{ID: id, Name: id}
	if _, seen := w.health[id]; !seen {
		w.health[id] = Health{Alive: true}
	}
}

func (w *world) leaving(id string) {
	m := w.state.Members[id]
	m.Leaving = true
	w.state.Members[id] = m
}

func (w *world) next() (Change, bool) {
	var list []Server
	for id, votes := range w.servers {
		list = append(list, Server{id, votes})
	}
	return NextChange(w.state, list, w.leader, w.health)
}

func (w *world) voters() []string {
	var ids []string
	for id, votes := range w.servers {
		if votes {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (w *world) up(id string) bool { return id == w.leader || w.health[id].Alive }

// quorum says whether a majority of the voters is up.
func (w *world) quorum() bool {
	v, live := w.voters(), 0
	for _, id := range v {
		if w.up(id) {
			live++
		}
	}
	return live > len(v)/2
}

// do plays a change and fails if it must never be made.
func (w *world) do(c Change) {
	w.t.Helper()
	w.log = append(w.log, fmt.Sprintf("%s %s", c.Action, c.ID))
	had := w.quorum()
	votes, known := w.servers[c.ID]
	switch c.Action {
	case AddNonvoter:
		if known {
			w.fatalf("%s is a server already", c.ID)
		}
		w.servers[c.ID] = false
	case Promote:
		if h := w.health[c.ID]; !known || votes || !h.Alive || !h.CaughtUp || h.Since < stableAfter || w.state.Members[c.ID].Leaving {
			w.fatalf("%s is not fit to vote: %+v", c.ID, h)
		}
		w.servers[c.ID] = true
	case Demote:
		if !votes || c.ID == w.leader {
			w.fatalf("%s can't be demoted", c.ID)
		}
		w.servers[c.ID] = false
	case Remove:
		if _, member := w.state.Members[c.ID]; !known || votes || member {
			w.fatalf("%s can't be removed", c.ID)
		}
		delete(w.servers, c.ID)
	case Transfer:
		if c.ID != w.leader {
			w.fatalf("%s does not lead", c.ID)
		}
		w.elect(func(id string) bool {
			return id != c.ID && !w.state.Members[id].Leaving && w.state.Members[id].ID != ""
		})
	default:
		w.fatalf("no action %q", c.Action)
	}
	if had && !w.quorum() {
		w.fatalf("the change lost the majority")
	}
}

func (w *world) elect(may func(id string) bool) {
	w.t.Helper()
	for _, id := range w.voters() {
		if w.health[id].Alive && may(id) {
			w.leader = id
			return
		}
	}
	w.fatalf("nobody can lead")
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter %s\nservers %v, leader %s\nmembers %v\nhealth %v",
		fmt.Sprintf(format, args...), strings.Join(w.log, ", "), w.servers, w.leader, w.state.Members, w.health)
}

// settle plays changes until there are none.
func (w *world) settle() *world {
	w.t.Helper()
	for range 200 {
		c, due := w.next()
		if !due {
			return w
		}
		w.do(c)
	}
	w.fatalf("no end to the changes")
	return w
}

func (w *world) expect(changes ...string) {
	w.t.Helper()
	if !slices.Equal(w.log, changes) {
		w.t.Fatalf("changes:\n%s\nexpected:\n%s", strings.Join(w.log, "\n"), strings.Join(changes, "\n"))
	}
}

func TestVotersFollowTheSizeOfTheMesh(t *testing.T) {
	for members, voters := range map[int]int{1: 1, 2: 1, 3: 3, 4: 3, 5: 5, 6: 5, 20: 5} {
		if got := len(newWorld(t, members, 1).settle().voters()); got != voters {
			t.Errorf("growing to %d members: %d voters", members, got)
		}
		if got := len(newWorld(t, members, min(members, 7)).settle().voters()); got != voters {
			t.Errorf("shrinking to %d members: %d voters", members, got)
		}
	}
}

func TestNothingBeforeTheFounding(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.state.MeshID, w.state.Members = "", nil
	w.settle().expect()
}

func TestNewcomer(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.join("c")
	w.settle().expect("add as non-voter c") // up, as far as anybody knows, but never seen
	w.health["c"] = Health{Alive: true, Since: justNow, CaughtUp: true}
	w.settle()
	w.health["c"] = Health{Alive: true, Since: settled}
	w.settle().expect("add as non-voter c")
	w.health["c"] = Health{Alive: true, Since: stableAfter, CaughtUp: true}
	w.settle().expect("add as non-voter c", "promote b", "promote c")
}

func TestNoSecondVoterWithoutAThird(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.health["c"] = Health{Since: settled}
	w.settle().expect()
}

func TestTwoVotersBecomeOne(t *testing.T) {
	w := newWorld(t, 3, 2)
	w.health["c"] = Health{Alive: true, Since: justNow}
	w.settle().expect() // it may be ready soon
	w.health["c"] = Health{Since: settled}
	w.settle().expect("demote b")
}

func TestNobodyIsPromotedWithoutAMajority(t *testing.T) {
	w := newWorld(t, 4, 3)
	w.health["b"], w.health["c"] = Health{Since: settled}, Health{Since: settled}
	w.settle().expect()
}

func TestFailedVoterKeepsItsVoteForAWhile(t *testing.T) {
	w := newWorld(t, 4, 3)
	w.health["c"] = Health{Since: replaceAfter - 1}
	w.settle().expect()
	w.health["c"] = Health{Since: replaceAfter}
	w.settle().expect("promote d", "demote c")
}

func TestFailedVoterKeepsItsVoteWithoutASpare(t *testing.T) {
	w := newWorld(t, 3, 3)
	w.health["c"] = Health{Since: settled}
	w.settle().expect()
}

func TestShrinkingWaitsForARestart(t *testing.T) {
	w := newWorld(t, 4, 5)
	w.servers["e"] = true // a member once
	w.health["e"] = Health{Alive: true, Since: settled}
	w.health["d"] = Health{Since: justNow}
	w.servers["d"] = true
	w.settle().expect("demote e", "remove e")
	w.health["d"] = Health{Since: settled}
	w.log = nil
	w.settle().expect("demote d")
}

func TestLeavingVoterIsReplacedFirst(t *testing.T) {
	w := newWorld(t, 4, 3)
	w.leaving("b")
	w.health["d"] = Health{Alive: true, Since: justNow} // not yet
	w.settle().expect()
	w.health["d"] = Health{Alive: true, Since: settled, CaughtUp: true}
	w.settle().expect("promote d", "demote b")
}

func TestLeavingVoterDoesNotWaitForEver(t *testing.T) {
	for name, spare := range map[string]Health{"dead": {Since: settled}, "never caught up": {Alive: true, Since: settled}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4, 3)
			w.leaving("b")
			w.health["d"] = spare
			w.settle()
			if w.servers["b"] {
				t.Fatalf("b still votes after %v", w.log)
			}
		})
	}
}

func TestLeavingLeader(t *testing.T) {
	w := newWorld(t, 3, 3)
	w.leaving("a")
	w.settle().expect("hand over leadership a", "demote a", "demote c")
}

func TestOnlyVoterLeaves(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.leaving("a")
	w.settle().expect("promote b", "hand over leadership a", "demote a")
}

func TestRevokedLeader(t *testing.T) {
	w := newWorld(t, 4, 3)
	delete(w.state.Members, "a")
	w.settle().expect("promote d", "hand over leadership a", "demote a", "remove a")
}

func TestForgottenServersGo(t *testing.T) {
	w := newWorld(t, 3, 3)
	w.servers["x"] = false
	w.servers["y"] = true
	w.settle().expect("remove x", "demote y", "remove y")
}

func TestMajorityIsKeptBeforeAnythingElse(t *testing.T) {
	w := newWorld(t, 3, 3)
	delete(w.state.Members, "b") // but c is down: a is about to lose its office
	w.health["b"] = Health{Since: justNow}
	w.health["c"] = Health{Since: settled}
	w.settle().expect()
}

// TestVotersComeToRest plays random histories: members join, leave and are
// removed, fail and come back, between changes. No change may cost a majority
// (see do), and when the world stands still, so do the changes, with as many
// voters as there should be.
func TestVotersComeToRest(t *testing.T) {
	for seed := range uint64(3000) {
		play(t, seed)
	}
}

func play(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	size := 1 + r.IntN(9)
	w := newWorld(t, size, 1+r.IntN(size))
	w.log = append(w.log, fmt.Sprintf("seed %d", seed))
	for range 60 {
		ids := slices.Sorted(maps.Keys(w.state.Members))
		id := ids[r.IntN(len(ids))]
		switch r.IntN(12) {
		case 0:
			w.join(fmt.Sprintf("n%d", r.IntN(30)))
		case 1:
			if w.state.staying() > 1 {
				w.leaving(id)
			}
		case 2:
			if len(ids) > 1 && id != w.leader {
				delete(w.state.Members, id)
			}
		case 3, 4:
			w.flip(r, id, Health{Since: time.Duration(r.IntN(60)) * time.Second})
		case 5, 6:
			w.health[id] = Health{Alive: true, Since: time.Duration(r.IntN(60)) * time.Second, CaughtUp: r.IntN(3) > 0}
		default:
			if c, due := w.next(); due {
				w.do(c)
			}
		}
	}
	for id := range w.state.Members { // what is failed stays so, the others come to be well
		w.health[id] = Health{Alive: w.health[id].Alive, Since: settled, CaughtUp: w.health[id].Alive}
	}
	w.settle()
	w.checkRest()
}

// flip fails a node, unless that costs the majority: then nobody could change
// anything.
func (w *world) flip(r *rand.Rand, id string, to Health) {
	before, leader := w.health[id], w.leader
	w.health[id] = to
	if id == leader {
		w.leader = ""
		for _, v := range w.voters() {
			if w.health[v].Alive && (w.leader == "" || r.IntN(2) == 0) {
				w.leader = v
			}
		}
	}
	if w.leader == "" || !w.quorum() {
		w.health[id], w.leader = before, leader
	}
}

func (w *world) checkRest() {
	w.t.Helper()
	var voters, good, fit int
	for id, m := range w.state.Members {
		votes, known := w.servers[id]
		if !known && !m.Leaving && w.health[id].Alive {
			w.fatalf("%s was left out", id)
		}
		if !m.Leaving && w.up(id) {
			fit++
		}
		if votes {
			voters++
			if !m.Leaving && w.up(id) {
				good++
			}
		}
	}
	for id := range w.servers {
		if _, member := w.state.Members[id]; !member && !w.mustStay(id) {
			w.fatalf("%s is no member, but a server", id)
		}
	}
	want := target(w.state.staying())
	odd := min(fit, want)
	odd -= 1 - odd%2
	if good < odd {
		w.fatalf("%d voters are well, and there could be %d", good, odd)
	}
	if voters > want && len(w.voters()) > good && w.quorumWithoutBad(good) {
		w.fatalf("%d voters, of which %d are well, where %d should be", voters, good, want)
	}
}

// mustStay says that a stray still votes because the majority depends on it, or
// because it leads and nobody else can.
func (w *world) mustStay(id string) bool {
	if !w.servers[id] {
		return false
	}
	if id == w.leader {
		return true
	}
	rest, live := 0, 0
	for _, v := range w.voters() {
		if v == id {
			continue
		}
		rest++
		if w.up(v) {
			live++
		}
	}
	return live <= rest/2
}

func (w *world) quorumWithoutBad(good int) bool { return good > (len(w.voters())-1)/2 }
