package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// State is one version of the plan. It is immutable: whoever holds a pointer may
// read it for ever, from any goroutine. The zero State is that of a mesh before
// its founding.
type State struct {
	// Index is the Raft index of the last command applied.
	Index uint64 `json:"index"`
	// Generation grows whenever it changes who works on what. It never repeats and
	// never falls.
	Generation uint64            `json:"generation"`
	MeshID     string            `json:"mesh_id"`
	Members    map[string]Member `json:"members,omitempty"` // by node id
	// Gone holds the ids that left or were removed: revoked ones for ever, of the
	// others the newest.
	Gone   map[string]Gone  `json:"gone,omitempty"`
	Tokens map[string]Token `json:"tokens,omitempty"` // by token id
	Key    Key              `json:"key"`
	// Datasets are by id.
	Datasets map[string]Dataset `json:"datasets,omitempty"`
	// Jobs are by id. JobsMade is how many there ever were.
	Jobs     map[string]Job `json:"jobs,omitempty"`
	JobsMade uint64         `json:"jobs_made,omitempty"`
}

// A Member is a node that takes part.
type Member struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Device  string `json:"device,omitempty"`
	Version string `json:"version,omitempty"`
	Memory  uint64 `json:"memory,omitempty"` // bytes it may use; 0: no bound
	Speed   uint64 `json:"speed,omitempty"`  // as measured, beside others' only; 0: unknown
	// PublicKey is the hex SHA-256 of the key it was admitted with. Certificates
	// are renewed with new keys; this one tells a repeated admission from a second
	// node under the same id.
	PublicKey string `json:"public_key"`
	Joined    uint64 `json:"joined"` // index of its admission
	Leaving   bool   `json:"leaving,omitempty"`
}

// Why says how a node came to be gone.
type Why string

// A node may be gone for three reasons, in rising order of finality.
const (
	Removed Why = "removed" // lost for long, or by an operator's word; may come back
	Left    Why = "left"    // asked to leave; its certificate is of no more use
	Revoked Why = "revoked" // shut out for good
)

// rank orders reasons by finality; 0 is no reason at all.
func (w Why) rank() int {
	switch w {
	case Removed:
		return 1
	case Left:
		return 2
	case Revoked:
		return 3
	}
	return 0
}

// Gone is a former member, or an id that was revoked without ever being one.
type Gone struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	Why   Why    `json:"why"`
	Index uint64 `json:"index"`
}

// A Token lets newcomers in. The plan holds the hash of its secret only.
type Token struct {
	ID      string    `json:"id"`      // the first 12 digits of Hash
	Hash    string    `json:"hash"`    // hex SHA-256 of the secret
	Created time.Time `json:"created"` // by the leader's clock
	Expires time.Time `json:"expires"` // zero: never
}

// Key is where the gossip key stands. The key itself is never here.
type Key struct {
	Serial uint64 `json:"serial"`
	Digest string `json:"digest"`
	// Previous is the digest of the key that is still accepted while nodes change
	// over; empty when they have.
	Previous string `json:"previous,omitempty"`
	// Stale says that a revoked node knows the key, so that a new one is due.
	Stale bool `json:"stale,omitempty"`
}

// Digest is the hex SHA-256 of the whole state but its Index. Nodes with the same
// digest hold the same plan.
func (s *State) Digest() string {
	c := *s
	c.Index = 0
	b, err := json.Marshal(c)
	if err != nil {
		// Strings, numbers and times in years of four digits always marshal; apply
		// lets no other time in.
		panic(fmt.Sprintf("plan: digest: %v", err))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// MemberByName finds the member that people call so.
func (s *State) MemberByName(name string) (Member, bool) {
	for _, m := range s.Members {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// Refused says whether connections of this id are refused: those of nodes that
// were revoked or have left. A node that was merely removed may connect, to be
// taken back.
func (s *State) Refused(id string) bool {
	return s.Gone[id].Why.rank() >= Left.rank()
}

// tokenIDLen is how much of a token's hash is its id.
const tokenIDLen = 12

// NewToken describes a token by the hash of its secret. A ttl of zero or less
// means that it never expires.
func NewToken(hash string, now time.Time, ttl time.Duration) Token {
	t := Token{ID: hash[:min(tokenIDLen, len(hash))], Hash: hash, Created: now}
	if ttl > 0 {
		t.Expires = now.Add(ttl)
	}
	return t
}

func (t Token) expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// CheckToken says whether whoever shows the secret with this hash may join: nil,
// ErrTokenUnknown or ErrTokenExpired.
func (s *State) CheckToken(hash string, now time.Time) error {
	t, ok := s.Tokens[hash[:min(tokenIDLen, len(hash))]]
	if !ok || t.Hash != hash {
		return ErrTokenUnknown
	}
	if t.expired(now) {
		return ErrTokenExpired
	}
	return nil
}
