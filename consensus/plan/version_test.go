package plan

import (
	"errors"
	"strings"
	"testing"
)

// A command is proposed only once all members know it, or if it lies in the log already.
func TestCommandsWaitForAllMembers(t *testing.T) {
	s := must(t, new(State), 1, Genesis{MeshID: "m", First: Member{ID: "a", Name: "alpha", PublicKey: "ka", Knows: Newest}, KeyDigest: "k"})
	add := func(id, name string, knows Kind) {
		s = must(t, s, s.Index+1, AddMember{Member: Member{ID: id, Name: name, PublicKey: "k" + id, Version: "v9", Knows: knows}})
	}
	if err := s.May(SetComputing{}); err != nil {
		t.Errorf("one member that knows all: %v", err)
	}
	add("b", "beta", KindSetComputing-1)
	add("c", "gamma", 0)
	err := s.May(SetComputing{})
	if !errors.Is(err, ErrNotAllKnow) || !strings.Contains(err.Error(), "node beta (hopmesh v9)") {
		t.Errorf("two members that do not know it: %v", err)
	}
	if err := s.May(Admit{}); err != nil {
		t.Errorf("a command that may lie in the log: %v", err)
	}
	if err := s.May(NameAuthority{}); !errors.Is(err, ErrNotAllKnow) {
		t.Errorf("a member that says nothing: %v", err)
	}
	for _, id := range []string{"b", "c"} {
		s = must(t, s, s.Index+1, UpdateMember{ID: id, Knows: Newest})
	}
	if err := s.May(SetComputing{}); err != nil || s.Needed() != KindAdmit {
		t.Errorf("all know it: %v, and %d is needed", err, s.Needed())
	}
	// It lies in the log even if it is refused.
	s, err = tried(t, s, s.Index+1, SetComputing{ID: "j1", To: 2})
	if !errors.Is(err, ErrNoJob) || s.Needed() != KindSetComputing {
		t.Errorf("%v, and %d is needed", err, s.Needed())
	}
	// So does a field that came with a later command.
	if err := s.May(DefineDataset{ID: "d1"}); err != nil {
		t.Errorf("a command without the field: %v", err)
	}
	for since, wide := range map[Kind]Command{KindScheduleJob: DefineDataset{ID: "d1", About: About{Targets: "numbers"}}, KindTypes: DefineDataset{ID: "d1", About: About{Types: "{}"}}, KindTriples: DefineDataset{ID: "d1", About: About{Types: "{}", Triples: true}}, KindEdges: DefineDataset{ID: "d1", About: About{EdgeFeatures: 2}}} {
		s := must(t, s, s.Index+1, UpdateMember{ID: "b", Knows: since - 1})
		if err := s.May(wide); !errors.Is(err, ErrNotAllKnow) {
			t.Errorf("a field that a member does not know: %v", err)
		}
		if wider, _ := tried(t, s, s.Index+1, wide); wider.Needed() != since {
			t.Errorf("%d is needed", wider.Needed())
		}
	}
	if err := s.May(SetComputing{}); err != nil {
		t.Errorf("a command that lies in the log: %v", err)
	}
	for knows, want := range map[Kind]error{0: ErrNotAllKnow, KindSetComputing - 1: ErrNotAllKnow, KindSetComputing: nil} {
		newcomer := Member{ID: "d", Name: "delta", PublicKey: "kd", Knows: knows}
		// Its admission may be proposed before such a command, and committed after it.
		if _, err := tried(t, s, s.Index+1, AddMember{Member: newcomer}); !errors.Is(err, want) {
			t.Errorf("a newcomer that knows %d: %v", knows, err)
		}
	}
}

// A snapshot of what this version does not know is refused as such: fields of it would be lost.
func TestSnapshotOfALaterVersion(t *testing.T) {
	s := must(t, new(State), 1, Genesis{MeshID: "m", First: Member{ID: "a", Name: "alpha", PublicKey: "ka", Knows: Newest}, KeyDigest: "k"})
	for needs, want := range map[Kind]error{Newest: nil, Newest + 1: ErrUnknownCommand} {
		later := *s
		later.Needs = needs
		b, err := MarshalSnapshot(&later)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := UnmarshalSnapshot(b); !errors.Is(err, want) {
			t.Errorf("after command %d: %v", needs, err)
		}
	}
}

// Versions that do not know Needs read every snapshot of the first kind, and would lose its new fields.
func TestSnapshotsThatEarlierVersionsRefuse(t *testing.T) {
	s := must(t, new(State), 1, Genesis{MeshID: "m", First: Member{ID: "a", Name: "alpha", PublicKey: "ka", Knows: Newest}, KeyDigest: "k"})
	for needs, want := range map[Kind]string{0: "hopmesh-plan/1 ", KindSetComputing: "hopmesh-plan/2 "} {
		s := *s
		s.Needs = needs
		b, err := MarshalSnapshot(&s)
		if err != nil || !strings.HasPrefix(string(b), want) {
			t.Errorf("after command %d: %.20q, %v", needs, b, err)
		}
		if again, err := UnmarshalSnapshot(b); err != nil || again.Digest() != s.Digest() {
			t.Errorf("after command %d: %v", needs, err)
		}
	}
}

// Nodes that do not know a command that may be ignored follow the plan all the same.
func TestWhatMayBeIgnoredIsNotNeeded(t *testing.T) {
	s := must(t, new(State), 1, Genesis{MeshID: "m", First: Member{ID: "a", Name: "alpha", PublicKey: "ka", Knows: Newest}, KeyDigest: "k"})
	data, err := Encode(SetComputing{ID: "j1", To: 2})
	if err != nil {
		t.Fatal(err)
	}
	data[atFlags] |= flagIgnorable
	if s, _ = Apply(s, 2, data); s.Index != 2 || s.Needs != 0 {
		t.Errorf("after entry %d, command %d is needed", s.Index, s.Needs)
	}
}
