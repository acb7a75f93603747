package session

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// A checkpoint that stands behind others is that of a node which was not the furthest:
// what it knows of itself stays.
func TestTheFurthestIsGoneOnFrom(t *testing.T) {
	s := &Session{Work: peer.Work{Nodes: []string{"a", "b", "c"}}}
	at := func(epoch, step uint64) Greeting { return Greeting{Have: true, Epoch: epoch, Step: step} }
	for _, c := range []struct {
		all  []Greeting
		want int
	}{
		{[]Greeting{{}, {}, {}}, -1},
		{[]Greeting{{}, at(1, 3), at(1, 3)}, 1},
		{[]Greeting{at(2, 0), at(1, 9), {}}, 0},
		{[]Greeting{at(1, 8), at(1, 9), {Damaged: true}}, 1},
	} {
		if got, err := s.Furthest(c.all, 0); got != c.want || err != nil {
			t.Errorf("of %+v it is %d, %v", c.all, got, err)
		}
	}
	if _, err := s.Furthest([]Greeting{{}, {Damaged: true}, {}}, 0); err == nil || !strings.Contains(err.Error(), "node b") {
		t.Error(err)
	}
	if _, err := s.Furthest([]Greeting{{}, {}, {}}, 3); err == nil || !strings.Contains(err.Error(), "3 epochs of this job are known") {
		t.Error(err)
	}
}

// Of two nodes at the same step, the one that has fewer models left to train is further.
func TestWhoHasFewerModelsLeftIsFurther(t *testing.T) {
	last := Greeting{Epoch: 1, Step: 4, Left: 1, Updates: 9}
	if other := (Greeting{Epoch: 1, Step: 4, Left: 2, Updates: 9}); last.Compare(&other) <= 0 {
		t.Errorf("%+v is not further than %+v", last, other)
	}
}

// FuzzGreeting decodes what another node sends when it meets, which may be anything.
func FuzzGreeting(f *testing.F) {
	b, err := binary.Append(nil, binary.LittleEndian, &Greeting{Wire: Wire, Have: true, Epoch: 3})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		var g Greeting
		if err := g.read(b); err == nil {
			if again, err := binary.Append(nil, binary.LittleEndian, &g); err != nil || g.Wire != Wire || len(again) != len(b) || g.DealTuning().Slots < 0 {
				t.Errorf("%v, %+v", err, g)
			}
		}
	})
}

// A node of another version is named by all, whatever else it sends.
func TestNodesOfAnotherVersionAreNamed(t *testing.T) {
	s := &Session{Work: peer.Work{Nodes: []string{"n0", "n1"}}}
	ours := []byte{Wire, 0, 0, 0, 5}
	for _, message := range [][]byte{nil, {1}, {Wire + 1, 0, 0, 0}, make([]byte, 41)} {
		_, err := s.unversioned([][]byte{ours, message})
		if _, agreed := errors.AsType[*Agreed](err); !agreed || !strings.Contains(err.Error(), "node n1 speaks of training in another version: run the same version of hopmesh on all nodes") {
			t.Errorf("%v: %v", message, err)
		}
	}
	if bodies, err := s.unversioned([][]byte{ours, ours[:4]}); err != nil || len(bodies[0]) != 1 || bodies[0][0] != 5 || len(bodies[1]) != 0 {
		t.Errorf("%v, %v", bodies, err)
	}
}
