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

// APIToken lets its holder use the API of any node of the mesh, and pins the mesh's authority to
// the same end.
type APIToken Token

const (
	tokenPrefix = "hm1-"
	apiPrefix   = "hma1-"
	tokenCheck  = 2
	tokenBytes  = sha256.Size + 20 + tokenCheck
)

// Lower case without padding, so that a double click selects it whole.
var (
	tokenText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

// NewToken returns a token with a new secret for the mesh of this authority.
func NewToken(ca [sha256.Size]byte) (Token, error) {
	t := Token{CA: ca}
	if _, err := rand.Read(t.Secret[:]); err != nil {
		return Token{}, fmt.Errorf("make a token: %w", err)
	}
	return t, nil
}

// NewAPIToken returns a token with a new secret for the API of the mesh of this authority.
func NewAPIToken(ca [sha256.Size]byte) (APIToken, error) {
	t, err := NewToken(ca)
	return APIToken(t), err
}

// ParseToken parses the output of String. Its errors distinguish a truncated or
// mistyped token from one that the mesh refuses, and never contain the token.
func ParseToken(s string) (Token, error) {
	return parseToken(s, tokenPrefix, "{token.create} on any node of the mesh makes one", ErrToken)
}

// ParseAPIToken parses the output of APIToken.String, as ParseToken does with that of Token.
func ParseAPIToken(s string) (APIToken, error) {
	t, err := parseToken(s, apiPrefix, "{api.token.create} on any node of the mesh makes one", ErrAPIToken)
	return APIToken(t), err
}

func parseToken(s, prefix, hint string, kind error) (Token, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	length := len(prefix) + tokenText.EncodedLen(tokenBytes)
	switch {
	case s == "":
		return Token{}, fmt.Errorf("%w: it is empty; %s", kind, hint)
	case !strings.HasPrefix(s, prefix):
		return Token{}, fmt.Errorf("%w: it does not start with %q; %s", kind, prefix, hint)
	case len(s) != length:
		return Token{}, fmt.Errorf("%w: it has %d characters instead of %d; copy it again, whole", kind, len(s), length)
	}
	b, err := tokenText.DecodeString(s[len(prefix):])
	if err != nil || len(b) != tokenBytes {
		return Token{}, fmt.Errorf("%w: it has a character that no token has; copy it again", kind)
	}
	var t Token
	copy(t.CA[:], b)
	copy(t.Secret[:], b[len(t.CA):])
	// Comparing the text instead of the bytes also refuses the second spelling that the
	// unused bits of the last character would allow.
	if t.text(prefix) != s {
		return Token{}, fmt.Errorf("%w: a character in it is wrong; copy it again", kind)
	}
	return t, nil
}

// String returns the token's text, which contains the secret.
func (t Token) String() string { return t.text(tokenPrefix) }

// String returns the token's text, which contains the secret.
func (t APIToken) String() string { return Token(t).text(apiPrefix) }

func (t Token) text(prefix string) string {
	b := make([]byte, 0, tokenBytes)
	b = append(b, t.CA[:]...)
	b = append(b, t.Secret[:]...)
	sum := sha256.Sum256(append([]byte(prefix), b...))
	return prefix + tokenText.EncodeToString(append(b, sum[:tokenCheck]...))
}

// Hash returns the digest of the secret, which the mesh stores.
func (t APIToken) Hash() string { return Token(t).Hash() }

// Hash returns the digest of the secret, which the mesh stores.
func (t Token) Hash() string {
	sum := sha256.Sum256(t.Secret[:])
	return hex.EncodeToString(sum[:])
}
