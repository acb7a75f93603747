package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"
)

// A Token lets its holder ask to join. It also tells the newcomer by which
// authority it knows the mesh, so that nobody can pose as it.
type Token struct {
	CA     [sha256.Size]byte // digest of the authority's public key
	Secret [20]byte
}

const (
	tokenPrefix = "hm1-"
	tokenCheck  = 2
	tokenBytes  = sha256.Size + 20 + tokenCheck
)

// Lower case and without padding: a double click selects it whole.
var (
	tokenText   = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	tokenLength = len(tokenPrefix) + tokenText.EncodedLen(tokenBytes)
)

// NewToken makes a token with a new secret for the mesh of this authority.
func NewToken(ca [sha256.Size]byte) (Token, error) {
	t := Token{CA: ca}
	if _, err := rand.Read(t.Secret[:]); err != nil {
		return Token{}, fmt.Errorf("make a token: %w", err)
	}
	return t, nil
}

// ParseToken reads what String wrote. Its errors tell a token that was cut off
// or mistyped from one that the mesh refuses, and never repeat the token.
func ParseToken(s string) (Token, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	switch {
	case s == "":
		return Token{}, fmt.Errorf("%w: it is empty; `hopmesh token create` on any node of the mesh makes one", ErrToken)
	case !strings.HasPrefix(s, tokenPrefix):
		return Token{}, fmt.Errorf("%w: it does not start with %q; `hopmesh token create` on any node of the mesh makes one", ErrToken, tokenPrefix)
	case len(s) != tokenLength:
		return Token{}, fmt.Errorf("%w: it has %d characters instead of %d; copy it again, whole", ErrToken, len(s), tokenLength)
	}
	b, err := tokenText.DecodeString(s[len(tokenPrefix):])
	if err != nil || len(b) != tokenBytes {
		return Token{}, fmt.Errorf("%w: it has a character that no token has; copy it again", ErrToken)
	}
	var t Token
	copy(t.CA[:], b)
	copy(t.Secret[:], b[len(t.CA):])
	// Comparing the text, not the bytes, also refuses the second spelling that the
	// unused bits of the last character would allow.
	if t.String() != s {
		return Token{}, fmt.Errorf("%w: a character in it is wrong; copy it again", ErrToken)
	}
	return t, nil
}

// String is the token as people pass it on. It contains the secret.
func (t Token) String() string {
	b := make([]byte, 0, tokenBytes)
	b = append(b, t.CA[:]...)
	b = append(b, t.Secret[:]...)
	sum := sha256.Sum256(append([]byte(tokenPrefix), b...))
	return tokenPrefix + tokenText.EncodeToString(append(b, sum[:tokenCheck]...))
}

// Hash is what the mesh keeps of the secret.
func (t Token) Hash() string {
	sum := sha256.Sum256(t.Secret[:])
	return hex.EncodeToString(sum[:])
}
