package plan

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// founded is a mesh with one member, a.
func founded(t testing.TB) *State {
	return must(t, new(State), 1, Genesis{MeshID: "m", First: Member{ID: "a", Name: "a", PublicKey: "ka"}, KeyDigest: "d1"})
}

func must(t testing.TB, s *State, index uint64, c Command) *State {
	t.Helper()
	data, err := Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	next, err := Apply(s, index, data)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestOnlyTheRevokedAreRememberedForEver(t *testing.T) {
	s := founded(t)
	index := uint64(1)
	remove := func(id string, why Why) {
		index++
		s = must(t, s, index, RemoveMember{ID: id, Why: why})
	}
	remove("worst", Revoked)
	for i := range maxGone + 10 {
		remove(fmt.Sprintf("n%d", i), Left)
	}
	if len(s.Gone) != maxGone+1 || !s.Refused("worst") || s.Refused("n9") || !s.Refused("n10") {
		t.Fatalf("%d are remembered; worst: %v, n9: %v, n10: %v", len(s.Gone), s.Refused("worst"), s.Refused("n9"), s.Refused("n10"))
	}
}

func TestTokensAreBounded(t *testing.T) {
	s, now := founded(t), time.Unix(1000, 0)
	index := uint64(1)
	create := func(n int, now time.Time) error {
		index++
		data, err := Encode(CreateToken{Token: NewToken(fmt.Sprintf("%012d", n), now, time.Minute), Now: now})
		if err != nil {
			t.Fatal(err)
		}
		s, err = Apply(s, index, data)
		return err
	}
	for i := range maxTokens {
		if err := create(i, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(maxTokens, now); !errors.Is(err, ErrTokensFull) {
		t.Fatalf("one more: %v", err)
	}
	if err := create(maxTokens, now.Add(time.Minute)); err != nil || len(s.Tokens) != 1 {
		t.Fatalf("when all have expired: %v, %d left", err, len(s.Tokens))
	}
}

func TestTokensOfAnyZoneGiveOneDigest(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	digest := func(zone *time.Location) string {
		c := CreateToken{Token: NewToken("0123456789abcdef", at.In(zone), time.Hour), Now: at.In(zone)}
		return must(t, founded(t), 2, c).Digest()
	}
	if a, b := digest(time.UTC), digest(time.FixedZone("east", 7200)); a != b {
		t.Errorf("%s in UTC, %s elsewhere", a, b)
	}
}

func TestOversizedCommand(t *testing.T) {
	_, err := Encode(SetLeaving{ID: strings.Repeat("x", maxCommand)})
	if !errors.Is(err, ErrOversized) {
		t.Errorf("encode: %v", err)
	}
	if _, err := Decode(make([]byte, maxCommand+1)); !errors.Is(err, ErrOversized) {
		t.Errorf("decode: %v", err)
	}
}

func TestDamagedSnapshot(t *testing.T) {
	good, err := MarshalSnapshot(founded(t))
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := UnmarshalSnapshot(good[:n]); err == nil {
			t.Fatalf("cut to %d of %d bytes: no error", n, len(good))
		}
		bad := bytes.Clone(good)
		bad[n] ^= 0x20
		if s, err := UnmarshalSnapshot(bad); err == nil {
			t.Fatalf("byte %d changed: read as %+v", n, s)
		}
	}
	later := bytes.Replace(good, []byte(snapshotVersion), []byte(snapshotMagic+"3"), 1)
	if _, err := UnmarshalSnapshot(later); !errors.Is(err, ErrUnknownCommand) {
		t.Errorf("of a later version: %v", err)
	}
	if _, err := UnmarshalSnapshot(make([]byte, MaxSnapshot+1)); !errors.Is(err, ErrBadSnapshot) {
		t.Errorf("too large: %v", err)
	}
}

func TestSnapshotThatNoHistoryLeadsTo(t *testing.T) {
	for name, s := range map[string]*State{
		"member": {Members: map[string]Member{"a": {ID: "b"}}},
		"gone":   {Gone: map[string]Gone{"a": {ID: "b", Why: Left}}},
		"why":    {Gone: map[string]Gone{"a": {ID: "a"}}},
		"token":  {Tokens: map[string]Token{"a": {ID: "b"}}},
		"ca":     {Authority: &Authority{Serial: 1, Cert: []byte("a certificate")}},
	} {
		b, err := MarshalSnapshot(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := UnmarshalSnapshot(b); !errors.Is(err, ErrBadSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A newcomer that asks again at another node shows its secret to that one, too.
func TestARepeatedAdmissionIsSeen(t *testing.T) {
	now := time.Unix(1000, 0).UTC()
	token := NewToken("fedcba9876543210", now, 0)
	token.Owner = "a"
	s := must(t, new(State), 1, Genesis{MeshID: "m", First: Member{ID: "a", Name: "a", PublicKey: "ka", Knows: Newest}, KeyDigest: "k"})
	s = must(t, s, 2, CreateToken{Token: token, Now: now})
	for i, by := range []string{"x", "y"} {
		s = must(t, s, uint64(3+i), Admit{Member: Member{ID: "c", Name: "c", PublicKey: "kc", Knows: Newest}, Token: token.ID, Now: now, Seen: []string{by, "a"}})
	}
	if got := s.Tokens[token.ID]; got.Used != 1 || !slices.Equal(got.Seen, []string{"x", "y"}) {
		t.Errorf("%+v", got)
	}
}
