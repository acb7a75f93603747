package plan

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// testdata/before has a log and a snapshot that a version wrote which did not note who joined
// by which token. The log leads to the same state today, and its snapshot opens: else nodes
// that replay the one would differ from nodes that start from the other.
func TestPlansOfBefore(t *testing.T) {
	b, err := os.ReadFile("testdata/before/snapshot")
	if err != nil {
		t.Fatal(err)
	}
	opened, err := UnmarshalSnapshot(b)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile("testdata/before/log.hex")
	if err != nil {
		t.Fatal(err)
	}
	s, index := new(State), uint64(0)
	for line := range strings.FieldsSeq(string(log)) {
		data, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		index++
		if s, err = Apply(s, index, data); err != nil {
			t.Fatalf("command %d: %v", index, err)
		}
	}
	again, err := MarshalSnapshot(s)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(b) || s.Digest() != opened.Digest() {
		t.Errorf("the log of before leads to\n%s\nand led to\n%s", again, b)
	}
	if s.KnowsSchedules() {
		t.Error("jobs have schedules although no member has said that it knows of any")
	}
	if s.BindsTokens() {
		t.Error("tokens are bound although no member has said that it knows how")
	}
	for _, id := range []string{"a", "b"} {
		s = must(t, s, s.Index+1, UpdateMember{ID: id, Knows: Newest})
	}
	if !s.KnowsSchedules() {
		t.Error("jobs have no schedules although all members know of them")
	}
	if !s.BindsTokens() {
		t.Error("tokens are not bound although all members know how")
	}
	s = must(t, s, s.Index+1, RemoveMember{ID: "b", Why: Revoked, Tokens: true})
	if len(s.Tokens) != 0 {
		t.Errorf("%+v is left although nobody knows by which token the revoked node had joined", s.Tokens)
	}
}
