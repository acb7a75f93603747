package access

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

var now = time.Unix(1_000_000, 0).UTC()

// numbered hashes differ in their first digits, as those of secrets do.
func numbered(n int) string { return fmt.Sprintf("%012x", n) + strings.Repeat("0", hashLen-idLen) }

func TestScopes(t *testing.T) {
	for _, c := range []struct {
		has, needs Scope
		may        bool
	}{
		{Read, Read, true},
		{Operate, Read, true},
		{Operate, Operate, true},
		{Read, Operate, false},
		{"", Read, false},
		{"", Operate, false},
		{"admin", Read, false},
	} {
		if got := c.has.Allows(c.needs); got != c.may {
			t.Errorf("%q may do what needs %q: %v", c.has, c.needs, got)
		}
	}
}

func TestTokensAreFoundWhileTheyLive(t *testing.T) {
	first, err := Set(nil).Add(New(numbered(1), Read, "one", now, time.Hour), now)
	if err != nil {
		t.Fatal(err)
	}
	both, err := first.Add(New(numbered(2), Operate, "", now, 0), now)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 1 {
		t.Errorf("the former set has changed: %v", first)
	}
	for _, c := range []struct {
		hash string
		at   time.Time
		err  error
	}{
		{numbered(1), now, nil},
		{numbered(1), now.Add(time.Hour - 1), nil},
		{numbered(1), now.Add(time.Hour), ErrExpired},
		{numbered(2), now.AddDate(100, 0, 0), nil},
		{numbered(3), now, ErrUnknown},
		{numbered(1)[:idLen], now, ErrUnknown},
		{numbered(1)[:hashLen-1] + "1", now, ErrUnknown}, // of one id
		{"", now, ErrUnknown},
	} {
		got, err := both.Find(c.hash, c.at)
		if !errors.Is(err, c.err) || err == nil && got.Hash != c.hash || err != nil && got != (Token{}) {
			t.Errorf("%s at %s: %v, %v", c.hash, c.at, got, err)
		}
	}
	if _, err := both.Add(New(numbered(1), Operate, "again", now, 0), now); !errors.Is(err, ErrTaken) {
		t.Errorf("a second token of one id: %v", err)
	}
	later, err := both.Add(New(numbered(1), Operate, "again", now, 0), now.Add(time.Hour))
	if err != nil || later[ID(numbered(1))].Name != "again" {
		t.Errorf("one that has expired stands in the way: %v, %v", later, err)
	}
	without, err := both.Remove(ID(numbered(2)))
	if err != nil || len(without) != 1 || len(both) != 2 {
		t.Errorf("%v of %v, %v", without, both, err)
	}
	if _, err := without.Remove(ID(numbered(2))); !errors.Is(err, ErrUnknown) {
		t.Errorf("removed twice: %v", err)
	}
}

func TestTokensPinAnAuthority(t *testing.T) {
	old, young := New(numbered(1), Read, "", now, 0), New(numbered(2), Read, "", now, 0)
	young.Authority = 1
	s := Set{old.ID: old, young.ID: young}
	if got := s.Pinning(1); len(got) != 1 || got[young.ID].ID == "" || len(s) != 2 {
		t.Errorf("%v of %v", got, s)
	}
	if got := Set(nil).Pinning(1); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestWhatNoPlanMayHold(t *testing.T) {
	good := New(numbered(1), Read, "ci of Grüße", now, time.Hour)
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Token){
		"no hash":          func(t *Token) { t.Hash = "" },
		"half a hash":      func(t *Token) { t.Hash = t.Hash[:32] },
		"no digits":        func(t *Token) { t.Hash = t.Hash[:63] + "x" },
		"capitals":         func(t *Token) { t.Hash = t.Hash[:63] + "A" },
		"another id":       func(t *Token) { t.ID = "000000000002" },
		"no scope":         func(t *Token) { t.Scope = "" },
		"another scope":    func(t *Token) { t.Scope = "admin" },
		"a long name":      func(t *Token) { t.Name = strings.Repeat("n", maxName+1) },
		"a name of colors": func(t *Token) { t.Name = "\x1b[31m" },
		"no UTF-8":         func(t *Token) { t.Name = "\xff" },
		"a far time":       func(t *Token) { t.Expires = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		bad := good
		change(&bad)
		if _, err := (Set)(nil).Add(bad, now); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if err := (Set{bad.ID: bad}).Check(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s in a set: %v", name, err)
		}
	}
	if err := (Set{"other": good}).Check(); !errors.Is(err, ErrInvalid) {
		t.Errorf("under another id: %v", err)
	}
	full := Set{}
	for n := range maxTokens {
		token := New(numbered(n), Read, "", now, 0)
		full[token.ID] = token
	}
	before := maps.Clone(full)
	if _, err := full.Add(New(numbered(maxTokens), Read, "", now, 0), now); !errors.Is(err, ErrFull) || !maps.Equal(full, before) {
		t.Errorf("%v", err)
	}
}
