package identity

import (
	"errors"
	"strings"
	"testing"
)

func newToken(t testing.TB) Token {
	t.Helper()
	token, err := NewToken([32]byte{1, 2, 3})
	must(t, err)
	return token
}

func TestTokenIsReadAsWritten(t *testing.T) {
	token := newToken(t)
	for _, s := range []string{token.String(), " " + token.String() + "\n", strings.ToUpper(token.String())} {
		got, err := ParseToken(s)
		must(t, err)
		if got != token || got.Hash() != token.Hash() || len(got.Hash()) != 64 {
			t.Fatalf("%q became %v", s, got)
		}
	}
	if other := newToken(t); other.Secret == token.Secret || other.Hash() == token.Hash() {
		t.Fatal("two tokens with one secret")
	}
}

// A token that is always the same: which typing errors pass is then no matter of
// chance.
var fixedToken = Token{CA: [32]byte{1, 2, 3, 31: 4}, Secret: [20]byte{5, 6, 7, 19: 8}}

// Every single wrong character is found here: none may reach a peer and be
// refused there, as if the mesh did not know the token.
func TestTokenMistyped(t *testing.T) {
	s := fixedToken.String()
	for n := range s {
		for _, c := range []byte("abcdefghijklmnopqrstuvwxyz0123456789- ") {
			wrong := s[:n] + string(c) + s[n+1:]
			if wrong == s {
				continue
			}
			if _, err := ParseToken(wrong); err == nil {
				t.Errorf("character %d may be %q", n, c)
			}
		}
	}
}

func TestTokenDamagedSaysHow(t *testing.T) {
	s := fixedToken.String()
	for wrong, want := range map[string]string{
		"":                        "empty",
		"   ":                     "empty",
		"SWMTKN-1-abc":            "does not start",
		s[:40]:                    "40 characters instead of 91",
		s + "a":                   "92 characters instead of 91",
		s[:30] + "1" + s[31:]:     "no token has",
		s[:4] + flip(s[4:]):       "is wrong",
		s[:len(s)-1] + "b":        "wrong",
		s[:len(s)-8] + "aaaaaaaa": "wrong",
	} {
		_, err := ParseToken(wrong)
		if !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want a word of %q", wrong, err, want)
			continue
		}
		if len(wrong) > 8 && strings.Contains(err.Error(), wrong[len(wrong)-8:]) {
			t.Errorf("the error repeats the token: %v", err)
		}
	}
}

// flip exchanges the first two characters that differ.
func flip(s string) string {
	for n := 1; n < len(s); n++ {
		if s[n] != s[n-1] {
			return s[:n-1] + string(s[n]) + string(s[n-1]) + s[n+1:]
		}
	}
	return s
}
