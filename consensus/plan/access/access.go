// Package access is what the plan holds of programs and people that use the API from other
// machines: tokens, each with a scope, of which only the hashes are kept. It is pure, and knows
// neither the commands of the plan nor how tokens are written.
package access

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"time"
	"unicode"
	"unicode/utf8"
)

// Scope is what the holder of a token may do.
type Scope string

const (
	Read    Scope = "read"    // reads what is not secret
	Operate Scope = "operate" // changes something, too
)

// Allows reports whether who has this scope may do what needs another.
func (s Scope) Allows(needed Scope) bool { return s == needed || s == Operate && needed == Read }

// Token lets its holder use the API.
type Token struct {
	ID      string    `json:"id"` // the first digits of Hash
	Name    string    `json:"name,omitempty"`
	Scope   Scope     `json:"scope"`
	Hash    string    `json:"hash"`    // hex SHA-256 of the secret
	Created time.Time `json:"created"` // by the leader's clock
	Expires time.Time `json:"expires"` // zero: never
	// Authority is the serial number of the authority that it pins, 0 being the founder's.
	Authority uint64 `json:"authority,omitempty"`
}

var (
	ErrInvalid = errors.New("the token makes no sense")
	ErrTaken   = errors.New("an API token with this id exists already")
	ErrFull    = errors.New("there are too many API tokens: revoke some with {api.token.revoke}")
	ErrUnknown = errors.New("the token is not known here: it was revoked or was never made in this mesh; {api.token.create} on a node makes a new one")
	ErrExpired = errors.New("the token has expired: {api.token.create} on a node makes a new one")
)

const (
	maxTokens = 256
	maxName   = 64 // bytes
	hashLen   = 64 // hex digits
	idLen     = 12
)

// ID returns the id of the token whose secret has this hash.
func ID(hash string) string { return hash[:min(idLen, len(hash))] }

// New describes a token by the hash of its secret. With a life of zero or less it never expires.
func New(hash string, scope Scope, name string, now time.Time, life time.Duration) Token {
	t := Token{ID: ID(hash), Name: name, Scope: scope, Hash: hash, Created: now.UTC()}
	if life > 0 {
		t.Expires = now.Add(life).UTC()
	}
	return t
}

func (t Token) expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// Check returns an error, ErrInvalid, unless the token may be in a plan.
func (t Token) Check() error {
	switch {
	case len(t.Hash) != hashLen || t.ID != ID(t.Hash):
		return fmt.Errorf("%w: the id %.40q of %d digits", ErrInvalid, t.ID, len(t.Hash))
	case t.Scope != Read && t.Scope != Operate:
		return fmt.Errorf("%w: the scope %.40q", ErrInvalid, t.Scope)
	case !ordinary(t.Created) || !ordinary(t.Expires):
		return fmt.Errorf("%w: a time far off", ErrInvalid)
	}
	for _, d := range t.Hash {
		if (d < '0' || d > '9') && (d < 'a' || d > 'f') {
			return fmt.Errorf("%w: a hash with %q", ErrInvalid, d)
		}
	}
	return CheckName(t.Name)
}

// CheckName returns an error, ErrInvalid, unless a token may have this name.
func CheckName(name string) error {
	if len(name) > maxName || !utf8.ValidString(name) {
		return fmt.Errorf("%w: a name of more than %d bytes, or none of UTF-8", ErrInvalid, maxName)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%w: a name with %q", ErrInvalid, r)
		}
	}
	return nil
}

// ordinary reports whether a time can be written as JSON in any zone.
func ordinary(t time.Time) bool { return t.Year() >= 1 && t.Year() < 9000 }

// Set is the tokens by their ids. Its methods return changed copies, and never change it.
type Set map[string]Token

// Check returns an error, ErrInvalid, unless the set may be in a plan.
func (s Set) Check() error {
	for id, t := range s {
		if id != t.ID {
			return fmt.Errorf("%w: %.40q under the id %.40q", ErrInvalid, t.ID, id)
		}
		if err := t.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Add returns the set with a token more, and without those that have expired.
func (s Set) Add(t Token, now time.Time) (Set, error) {
	if err := t.Check(); err != nil {
		return s, err
	}
	if !ordinary(now) {
		return s, fmt.Errorf("%w: a time far off", ErrInvalid)
	}
	next := Set{}
	maps.Copy(next, s)
	maps.DeleteFunc(next, func(_ string, t Token) bool { return t.expired(now) })
	if _, taken := next[t.ID]; taken {
		return s, ErrTaken
	}
	if len(next) >= maxTokens {
		return s, ErrFull
	}
	next[t.ID] = t
	return next, nil
}

// Remove returns the set without a token.
func (s Set) Remove(id string) (Set, error) {
	if _, is := s[id]; !is {
		return s, ErrUnknown
	}
	next := maps.Clone(s)
	delete(next, id)
	return next, nil
}

// Pinning returns the set without the tokens that pin an authority before the one with this serial
// number.
func (s Set) Pinning(authority uint64) Set {
	next := maps.Clone(s)
	maps.DeleteFunc(next, func(_ string, t Token) bool { return t.Authority < authority })
	return next
}

// Find returns the token whose secret has this hash. It returns ErrUnknown or ErrExpired if no
// valid token has it. Its time does not depend on how much of a hash is right.
func (s Set) Find(hash string, now time.Time) (Token, error) {
	var found Token
	for _, t := range s {
		if subtle.ConstantTimeCompare([]byte(t.Hash), []byte(hash)) == 1 {
			found = t
		}
	}
	switch {
	case found.ID == "":
		return Token{}, ErrUnknown
	case found.expired(now):
		return Token{}, ErrExpired
	}
	return found, nil
}
