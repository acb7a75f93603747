package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"
)

// Token lets its holder ask to join. It also pins the mesh's authority, so that nobody
// can pose as the mesh to the newcomer.
type Token struct {
	CA     [sha256.Size]byte // digest of the authority's public key
	Secret [20]byte
}

const (
	tokenPrefix = "hm1-"
	tokenCheck  = 2
	tokenBytes  = sha256.Size + 20 + tokenCheck
)

// Lower case without padding, so that a double click selects it whole.
var (
	tokenText   = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	tokenLength = len(tokenPrefix) + tokenText.EncodedLen(tokenBytes)
)

// NewToken returns a token with a new secret for the mesh of this authority.
func NewToken(ca [sha256.Size]byte) (Token, error) {
	t := Token{CA: ca}
	if _, err := rand.Read(t.Secret[:]); err != nil {
		return Token{}, fmt.Errorf("make a token: %w", err)
	}
	return t, nil
}

// ParseToken parses the output of String. Its errors distinguish a truncated or
// mistyped token from one that the mesh refuses, and never contain the token.
func ParseToken(s string) (Token, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	switch {
	case s == "":
		return Token{}, fmt.Errorf("%w: it is empty; {token.create} on any node of the mesh makes one", ErrToken)
	case !strings.HasPrefix(s, tokenPrefix):
		return Token{}, fmt.Errorf("%w: it does not start with %q; {token.create} on any node of the mesh makes one", ErrToken, tokenPrefix)
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
	// Comparing the text instead of the bytes also refuses the second spelling that the
	// unused bits of the last character would allow.
	if t.String() != s {
		return Token{}, fmt.Errorf("%w: a character in it is wrong; copy it again", ErrToken)
	}
	return t, nil
}

// String returns the token's text, which contains the secret.
func (t Token) String() string {
	b := make([]byte, 0, tokenBytes)
	b = append(b, t.CA[:]...)
	b = append(b, t.Secret[:]...)
	sum := sha256.Sum256(append([]byte(tokenPrefix), b...))
	return tokenPrefix + tokenText.EncodeToString(append(b, sum[:tokenCheck]...))
}

// Hash returns the digest of the secret, which the mesh stores.
func (t Token) Hash() string {
	sum := sha256.Sum256(t.Secret[:])
	return hex.EncodeToString(sum[:])
}
