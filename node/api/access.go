package api

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// AccessRequest asks for a token of the API.
type AccessRequest struct {
	Scope string `json:"scope"`          // read or operate
	TTL   string `json:"ttl,omitempty"`  // such as "24h"; "" or "0": for ever
	Name  string `json:"name,omitempty"` // what it is for
}

// AccessToken is a new token of the API. It can't be shown again.
type AccessToken struct {
	ID      string     `json:"id"`
	Token   string     `json:"token"`
	Scope   string     `json:"scope"`
	Name    string     `json:"name"`
	Expires *time.Time `json:"expires"` // null: never
}

// AccessInfo is what the mesh stores about a token of the API.
type AccessInfo struct {
	ID      string     `json:"id"`
	Scope   string     `json:"scope"`
	Name    string     `json:"name"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires"` // null: never
}

// The scopes of tokens of the API.
const (
	ScopeRead    = "read"
	ScopeOperate = "operate"
)

// Scopes lists the scopes of tokens of the API.
func Scopes() []string { return []string{ScopeRead, ScopeOperate} }

// maxAccessName bounds the name of a token, in bytes.
const maxAccessName = 64

// Check returns an error if no node would accept the request.
func (r AccessRequest) Check() error {
	switch {
	case r.Scope == "":
		return Invalid("the request names no scope: use %s", strings.Join(Scopes(), " or "))
	case !slices.Contains(Scopes(), r.Scope):
		return Invalid("there is no scope %q: use %s", r.Scope, strings.Join(Scopes(), " or "))
	case len(r.Name) > maxAccessName:
		return Invalid("the token's name has %d bytes: use %d at most", len(r.Name), maxAccessName)
	case !utf8.ValidString(r.Name) || strings.ContainsFunc(r.Name, func(c rune) bool { return !unicode.IsPrint(c) }):
		return Invalid("the token's name %q has a character that can't be printed: leave it out", r.Name)
	}
	_, err := r.Life()
	return err
}

// Life returns how long the token lives, 0 being for ever.
func (r AccessRequest) Life() (time.Duration, error) { return lifeOf(r.TTL) }
