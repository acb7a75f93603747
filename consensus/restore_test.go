package consensus

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// A plan is restored on one node from a backup. The others come back with logs that went on after
// it, and drop what they have for what was restored.
func TestRestoredPlanOutranksWhatOthersHave(t *testing.T) {
	virtual(t, func(t *testing.T, c *cluster) {
		a := c.found("a")
		c.grow("b", "c")
		c.waitVoterCount(15*time.Second, 3)
		backup := c.apply(token(1))
		for i := range 20 { // what the backup lacks
			c.apply(token(100 + i))
		}
		c.waitEqual(5 * time.Second)
		was, term := a.State(), a.Term()
		for _, id := range []string{"a", "b", "c"} {
			c.nodes[id].stop()
		}
		ahead := *backup
		ahead.Index, ahead.Generation = was.Index+1000, was.Generation+1000
		a.stores = MemoryStores()
		if err := Restore(a.stores, "a", &ahead, term+1000); err != nil {
			t.Fatal(err)
		}
		if err := Restore(a.stores, "a", &ahead, term+1000); !errors.Is(err, ErrHasState) {
			t.Errorf("a second time: %v", err)
		}
		if err := Restore(MemoryStores(), "z", &ahead, term+1000); !errors.Is(err, plan.ErrNoMember) {
			t.Errorf("of a stranger: %v", err)
		}
		a.start(nil)
		if l := c.leader(); l != a {
			t.Fatalf("%s leads", l.id)
		}
		s := a.State()
		if len(s.Members) != 3 || len(s.Tokens) != len(backup.Tokens) || s.Index < ahead.Index || s.Generation < ahead.Generation || !slices.Equal(a.voters(), []string{"a"}) {
			t.Fatalf("restored %+v with voters %v", s, a.voters())
		}
		c.nodes["b"].start(nil)
		c.nodes["c"].start(nil)
		c.waitVoterCount(60*time.Second, 3)
		c.apply(token(2))
		c.waitEqual(30 * time.Second)
		for _, id := range []string{"b", "c"} {
			if got := c.nodes[id].State(); got.Tokens[token(2).Token.ID].ID == "" || got.Tokens[token(105).Token.ID].ID != "" {
				t.Errorf("%s has %+v", id, got.Tokens)
			}
		}
	})
}

// What Restore wrote to a disk is opened as what a node left there.
func TestRestoreOnDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := DiskStores(dir, discard())
	if err != nil {
		t.Fatal(err)
	}
	state := &plan.State{Index: 1 << 31, Generation: 1 << 31, MeshID: "0123456789abcdef", Members: map[string]plan.Member{"a": {ID: "a", Name: "a"}}}
	if err := errors.Join(Restore(s, "a", state, 1<<31), s.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = DiskStores(dir, discard()); err != nil {
		t.Fatal(err)
	}
	got, err := replay(s)
	term, termErr := s.Stable.GetUint64([]byte("CurrentTerm"))
	if err := errors.Join(err, termErr, s.Close()); err != nil || got.Digest() != state.Digest() || got.Index != state.Index || term != 1<<31 {
		t.Errorf("it is %+v in term %d: %v", got, term, err)
	}
}
