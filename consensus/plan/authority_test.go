package plan

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// The authority is replaced one step at a time, and tokens end with the one that they pin.
func TestAuthorities(t *testing.T) {
	now := time.Unix(1000, 0).UTC()
	cert, link := []byte("a certificate"), []byte("a link")
	name := func(serial uint64) NameAuthority {
		return NameAuthority{Serial: serial, Cert: cert, Link: link, Now: now}
	}
	token := func(hash string, authority uint64) CreateToken {
		n := NewToken(hash, now, 0)
		n.Authority = authority
		return CreateToken{Token: n, Now: now}
	}
	s := must(t, new(State), 1, Genesis{MeshID: "m", First: Member{ID: "a", Name: "a", PublicKey: "ka", Knows: Newest}, KeyDigest: "k"})
	if !s.KnowsAuthorities() {
		t.Error("the founder does not know of authorities")
	}
	older := must(t, s, 2, UpdateMember{ID: "a", Knows: KindAdmit})
	if older.KnowsAuthorities() {
		t.Error("an earlier version knows of authorities")
	}
	refused := func(s *State, c Command, want error) {
		t.Helper()
		data, err := Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		next, err := Apply(s, 9, data)
		if !errors.Is(err, want) || next.Digest() != s.Digest() {
			t.Errorf("%+v: %v, want %v", c, err, want)
		}
	}
	s = must(t, s, 2, token("a000000000000", 0))
	refused(s, RetireAuthority{Serial: 0}, ErrAuthoritySerial)
	refused(s, RetireAuthority{Serial: 1}, ErrAuthoritySerial)
	refused(s, name(0), ErrAuthoritySerial)
	refused(s, NameAuthority{Serial: 1, Link: link, Now: now}, ErrInvalid)
	refused(s, NameAuthority{Serial: 1, Cert: cert, Now: now}, ErrInvalid)
	refused(s, NameAuthority{Serial: 1, Cert: []byte(strings.Repeat("x", maxAuthority+1)), Link: link, Now: now}, ErrInvalid)
	refused(s, NameAuthority{Serial: 1, Cert: cert, Link: link, Now: time.Date(9500, 1, 1, 0, 0, 0, 0, time.UTC)}, ErrInvalid)
	s = must(t, s, 3, name(1))
	refused(s, name(2), ErrAuthorityTurning)
	refused(s, token("b000000000000", 0), ErrAuthoritySerial)
	s = must(t, s, 4, token("c000000000000", 1))
	before := s.Authority
	s = must(t, s, 5, RetireAuthority{Serial: 1})
	if s.Authority.Former || !before.Former || len(s.Tokens) != 1 || s.Tokens[TokenID("c000000000000")].Authority != 1 {
		t.Errorf("%+v, %+v, %v", s.Authority, before, s.Tokens)
	}
	s = must(t, s, 6, name(2))
	b, err := MarshalSnapshot(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := UnmarshalSnapshot(b)
	if err != nil || again.Digest() != s.Digest() {
		t.Errorf("after a snapshot it is another state: %v", err)
	}
}
