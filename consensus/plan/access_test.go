package plan

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan/access"
)

// Tokens of the API come and go, end with the CA that they pin, and all of them with a node that is
// revoked, since any may have been shown to it.
func TestTokensOfTheAPI(t *testing.T) {
	now := time.Unix(1000, 0).UTC()
	token := func(digit string, authority uint64) access.Token {
		n := access.New(digit+hash[1:], access.Read, "", now, 0)
		n.Authority = authority
		return n
	}
	s := must(t, new(State), 1, Genesis{MeshID: "m", First: Member{ID: "a", Name: "a", PublicKey: "ka", Knows: Newest}, KeyDigest: "k"})
	if s.May(GrantAccess{}) != nil || must(t, s, 2, UpdateMember{ID: "a", Knows: KindSetComputing}).May(GrantAccess{}) == nil {
		t.Error("who knows of tokens of the API is mistaken")
	}
	refused := func(s *State, c Command, want error) {
		t.Helper()
		data, err := Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		next, err := Apply(s, 9, data)
		if !errors.Is(err, want) || !maps.Equal(next.Access, s.Access) {
			t.Errorf("%+v: %v, want %v", c, err, want)
		}
	}
	s = must(t, s, 2, AddMember{Member: Member{ID: "b", Name: "b", PublicKey: "kb", Knows: Newest}})
	s = must(t, s, 3, GrantAccess{Token: token("a", 0), Now: now})
	refused(s, GrantAccess{Token: token("a", 0), Now: now}, access.ErrTaken)
	refused(s, RevokeAccess{ID: "none"}, access.ErrUnknown)
	before := s
	if s = must(t, s, 4, RevokeAccess{ID: token("a", 0).ID}); len(s.Access) != 0 || len(before.Access) != 1 {
		t.Errorf("%v of %v", s.Access, before.Access)
	}
	s = before
	s = must(t, s, 5, NameAuthority{Serial: 1, Cert: []byte("c"), Link: []byte("l"), Now: now})
	refused(s, GrantAccess{Token: token("b", 0), Now: now}, ErrAuthoritySerial)
	s = must(t, s, 6, GrantAccess{Token: token("c", 1), Now: now})
	b, err := MarshalSnapshot(s)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := UnmarshalSnapshot(b); err != nil || again.Digest() != s.Digest() || len(again.Access) != 2 {
		t.Errorf("from a snapshot: %v", err)
	}
	if s = must(t, s, 7, RetireAuthority{Serial: 1}); len(s.Access) != 1 || s.Access[token("c", 1).ID].Authority != 1 {
		t.Errorf("after the CA has ended: %v", s.Access)
	}
	if left := must(t, s, 8, RemoveMember{ID: "b", Why: Removed}); len(left.Access) != 1 {
		t.Errorf("after a removal: %v", left.Access)
	}
	if left := must(t, s, 8, RemoveMember{ID: "b", Why: Revoked}); len(left.Access) != 0 {
		t.Errorf("after a revocation: %v", left.Access)
	}
	broken := *s
	broken.Access = access.Set{"other": token("d", 0)}
	if b, err = MarshalSnapshot(&broken); err != nil {
		t.Fatal(err)
	}
	if _, err := UnmarshalSnapshot(b); !errors.Is(err, ErrBadSnapshot) {
		t.Errorf("a damaged snapshot: %v", err)
	}
}
