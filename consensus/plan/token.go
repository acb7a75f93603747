package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan/access"
)

// Token lets new nodes join. The plan holds only the hash of its secret.
type Token struct {
	ID      string    `json:"id"`      // the first 12 digits of Hash
	Hash    string    `json:"hash"`    // hex SHA-256 of the secret
	Created time.Time `json:"created"` // by the leader's clock
	Expires time.Time `json:"expires"` // zero: never
	// Owner is the id of the node that it was asked of; "" if a version made it that kept
	// no record.
	Owner string `json:"owner,omitempty"`
	// Uses is how many nodes it admits, 0 being any number, and Used how many it has
	// admitted.
	Uses uint64 `json:"uses,omitempty"`
	Used uint64 `json:"used,omitempty"`
	// Seen lists the ids of other nodes that its secret has passed through, in order:
	// leaders that made it or checked it, and nodes that newcomers asked.
	Seen []string `json:"seen,omitempty"`
	// Authority is the serial number of the authority that it pins, 0 being the founder's.
	Authority uint64 `json:"authority,omitempty"`
}

// tokenIDLen is how many digits of a token's hash are its id.
const tokenIDLen = 12

// TokenID returns the id of the token whose secret has this hash.
func TokenID(hash string) string { return hash[:min(tokenIDLen, len(hash))] }

// NewToken describes a token by the hash of its secret. A token with a ttl of zero or
// less never expires.
func NewToken(hash string, now time.Time, ttl time.Duration) Token {
	t := Token{ID: TokenID(hash), Hash: hash, Created: now}
	if ttl > 0 {
		t.Expires = now.Add(ttl)
	}
	return t
}

func (t Token) expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

func (t Token) usedUp() bool { return t.Uses > 0 && t.Used >= t.Uses }

// knownTo reports whether a node may know the secret. Of a token without an owner nobody
// can tell.
func (t Token) knownTo(id string) bool {
	return t.Owner == "" || t.Owner == id || slices.Contains(t.Seen, id)
}

// mostSeen bounds Token.Seen.
const mostSeen = 1024

// see notes the nodes that the secret has passed through. It does not change the list that
// t had. Once there are too many to note, anybody counts as one.
func (t *Token) see(nodes []string) {
	for _, id := range nodes {
		switch {
		case t.knownTo(id):
			continue
		case len(t.Seen) >= mostSeen:
			t.Owner, t.Seen = "", nil
			return
		}
		at, _ := slices.BinarySearch(t.Seen, id)
		t.Seen = slices.Insert(slices.Clone(t.Seen), at, id)
	}
}

// maxSeen bounds the nodes that one command adds to Token.Seen: the one that was asked, and
// the leader.
const maxSeen = 2

func checkSeen(nodes []string) error {
	if len(nodes) > maxSeen {
		return fmt.Errorf("%w: a token that %d nodes have seen at once", ErrInvalid, len(nodes))
	}
	for _, id := range nodes {
		if err := checkText("id", id); err != nil {
			return err
		}
	}
	return nil
}

// CheckToken returns an error unless the holder of the secret with this hash may join:
// ErrTokenUnknown, ErrTokenExpired or ErrTokenUsedUp.
func (s *State) CheckToken(hash string, now time.Time) error {
	t, ok := s.Tokens[TokenID(hash)]
	if !ok || t.Hash != hash {
		return ErrTokenUnknown
	}
	return t.check(now)
}

func (t Token) check(now time.Time) error {
	switch {
	case t.expired(now):
		return ErrTokenExpired
	case t.usedUp():
		return ErrTokenUsedUp
	}
	return nil
}

// Admitted reports whether a node was admitted with this key by the token with this hash
// and is still a member, so that its request is a repeated one.
func (s *State) Admitted(id, publicKey, hash string) bool {
	m, in := s.Members[id]
	return in && m.PublicKey == publicKey && m.Token == TokenID(hash) && s.Tokens[m.Token].Hash == hash
}

// JoinedBy lists the names of the nodes that joined by a token and of those among them that
// have left since, sorted.
func (s *State) JoinedBy(token string) []string {
	var names []string
	for id, m := range s.Members {
		if m.Token == token {
			names = append(names, s.NameOf(id))
		}
	}
	for id, g := range s.Gone {
		if _, back := s.Members[id]; g.Token == token && !back {
			names = append(names, s.NameOf(id))
		}
	}
	slices.Sort(names)
	return names
}

// TokensOf lists the ids of the tokens that end when a node is revoked, sorted: those whose
// secret it may know. If nobody noted by which token it joined, those are all.
func (s *State) TokensOf(id string) []string {
	m := s.Members[id]
	joined := cmp.Or(m.Token, s.Gone[id].Token)
	var list []string
	for _, t := range s.Tokens {
		if joined == "" && !m.Founder || t.ID == joined || t.knownTo(id) {
			list = append(list, t.ID)
		}
	}
	slices.Sort(list)
	return list
}

// BindsTokens reports whether nodes are admitted by Admit, which counts a token's uses and
// notes who joined by it: once, and so long as, no member is of a version that does not
// know that command.
func (s *State) BindsTokens() bool {
	return s.May(Admit{}) == nil
}

func (c CreateToken) apply(s *State, _ uint64) error {
	t := c.Token
	t.Created, t.Expires = t.Created.UTC(), t.Expires.UTC()
	if err := checkText("token", t.Hash); err != nil {
		return err
	}
	if want := NewToken(t.Hash, t.Created, 0); len(t.Hash) < tokenIDLen || t.ID != want.ID {
		return fmt.Errorf("%w: token id %q", ErrInvalid, t.ID)
	}
	if !ordinary(t.Created) || !ordinary(t.Expires) || !ordinary(c.Now) {
		return fmt.Errorf("%w: a token of a time far off", ErrInvalid)
	}
	if t.Used != 0 || t.Uses > maxNumber {
		return fmt.Errorf("%w: a new token for %d nodes, of which %d joined", ErrInvalid, t.Uses, t.Used)
	}
	if err := checkOptional("id", t.Owner); err != nil {
		return err
	}
	if err := checkSeen(t.Seen); err != nil {
		return err
	}
	if t.Authority < s.authority() || t.Authority > maxNumber {
		return fmt.Errorf("%w: the token pins %d, and %d is in force", ErrAuthoritySerial, t.Authority, s.authority())
	}
	seen := t.Seen
	t.Seen = nil
	t.see(seen)
	maps.DeleteFunc(s.Tokens, func(_ string, t Token) bool { return t.expired(c.Now) })
	if _, taken := s.Tokens[t.ID]; taken {
		return fmt.Errorf("%s: %w", t.ID, ErrTokenTaken)
	}
	if len(s.Tokens) >= maxTokens {
		return ErrTokensFull
	}
	s.Tokens[t.ID] = t
	return nil
}

// ordinary reports whether a time can be written as JSON in any zone.
func ordinary(t time.Time) bool { return t.Year() >= 1 && t.Year() < 9000 }

func (c RevokeToken) apply(s *State, _ uint64) error {
	if _, ok := s.Tokens[c.ID]; !ok {
		return ErrTokenUnknown
	}
	delete(s.Tokens, c.ID)
	return nil
}

func (c Admit) apply(s *State, index uint64) error {
	if !ordinary(c.Now) {
		return fmt.Errorf("%w: a time far off", ErrInvalid)
	}
	if err := checkSeen(c.Seen); err != nil {
		return err
	}
	m := c.Member
	if in, ok := s.Members[m.ID]; ok && in.PublicKey == m.PublicKey {
		// It repeats a request, which takes no other use. But it may have asked another node.
		if t, ok := s.Tokens[c.Token]; ok {
			t.see(c.Seen)
			s.Tokens[t.ID] = t
		}
		return nil
	}
	t, ok := s.Tokens[c.Token]
	if !ok {
		return ErrTokenUnknown
	}
	if err := t.check(c.Now); err != nil {
		return err
	}
	m.Token = t.ID
	if err := (AddMember{Member: m}).apply(s, index); err != nil {
		return err
	}
	t.Used = min(t.Used+1, maxNumber)
	t.see(c.Seen)
	s.Tokens[t.ID] = t
	s.Binding = true
	return nil
}

type (
	// GrantAccess adds a token of the API, and drops those that have expired by Now, the leader's
	// clock.
	GrantAccess struct {
		Token access.Token `json:"token"`
		Now   time.Time    `json:"now"`
	}

	// RevokeAccess drops a token of the API.
	RevokeAccess struct {
		ID string `json:"id"`
	}
)

func (GrantAccess) kind() Kind  { return KindGrantAccess }
func (RevokeAccess) kind() Kind { return KindRevokeAccess }

func (c GrantAccess) apply(s *State, _ uint64) (err error) {
	if c.Token.Authority < s.authority() || c.Token.Authority > maxNumber {
		return fmt.Errorf("%w: the token pins %d, and %d is in force", ErrAuthoritySerial, c.Token.Authority, s.authority())
	}
	s.Access, err = s.Access.Add(c.Token, c.Now)
	return err
}

func (c RevokeAccess) apply(s *State, _ uint64) (err error) {
	s.Access, err = s.Access.Remove(c.ID)
	return err
}
