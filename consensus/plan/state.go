package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/hopmesh/hopmesh/consensus/plan/access"
)

// State is one version of the plan. It is immutable: a pointer to it may be read for
// ever from any goroutine. The zero State is that of a mesh before its founding.
type State struct {
	// Index is the Raft index of the last command applied.
	Index uint64 `json:"index"`
	// Generation grows with every change of the assignment of work. It never repeats
	// and never falls.
	Generation uint64 `json:"generation"`
	MeshID     string `json:"mesh_id"`
	// Needs is the newest command in the log that is newer than Silent. See Needed.
	Needs   Kind              `json:"needs,omitempty"`
	Members map[string]Member `json:"members,omitempty"` // by node id
	// Gone holds the ids of nodes that left or were removed. Revoked ids stay for ever,
	// of the others only the newest.
	Gone   map[string]Gone  `json:"gone,omitempty"`
	Tokens map[string]Token `json:"tokens,omitempty"` // by token id
	// Access is who may use the API from other machines.
	Access access.Set `json:"access,omitempty"`
	// Binding means that tokens count their uses and that members say by which they joined,
	// from now on: see BindsTokens.
	Binding bool `json:"binding,omitempty"`
	Key     Key  `json:"key"`
	// Authority is nil as long as the mesh has the founder's.
	Authority *Authority `json:"authority,omitempty"`
	// Datasets are by id.
	Datasets map[string]Dataset `json:"datasets,omitempty"`
	// Jobs are by id. JobsMade is the number of jobs ever created.
	Jobs     map[string]Job `json:"jobs,omitempty"`
	JobsMade uint64         `json:"jobs_made,omitempty"`
}

// Member is a node that belongs to the mesh.
type Member struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Device  string `json:"device,omitempty"`
	Version string `json:"version,omitempty"`
	Memory  uint64 `json:"memory,omitempty"` // bytes it may use; 0: no bound
	Speed   uint64 `json:"speed,omitempty"`  // relative to other nodes; 0: unknown
	// Computes are the numbers of computing that it can follow: programs with the same
	// number compute the same bits.
	Computes Numbers `json:"computes,omitzero"`
	// PublicKey is the hex SHA-256 of the key it was admitted with. Certificates are
	// renewed with new keys; this one distinguishes a repeated admission from a second
	// node under the same id.
	PublicKey string `json:"public_key"`
	Joined    uint64 `json:"joined"` // index of its admission
	Leaving   bool   `json:"leaving,omitempty"`
	// Token is the id of the token it joined by; "" for the founder, and for nodes that
	// joined before that was noted.
	Token   string `json:"token,omitempty"`
	Founder bool   `json:"founder,omitempty"` // false also if that was not noted
	// Knows is the newest command that its version knows; 0: it does not say.
	Knows Kind `json:"knows,omitempty"`
}

// Numbers is a range of version numbers, both ends included. The zero value is a program's from
// before there were numbers, which counts as 1.
type Numbers struct {
	Min uint32 `json:"min"`
	Max uint32 `json:"max"`
}

// Has reports whether n is among the numbers. 0 counts as 1.
func (r Numbers) Has(n uint32) bool {
	r, n = r.norm(), max(n, 1)
	return r.Min <= n && n <= r.Max
}

// Common returns the highest number that both have, or 0.
func (r Numbers) Common(o Numbers) uint32 {
	r, o = r.norm(), o.norm()
	if n := min(r.Max, o.Max); n >= max(r.Min, o.Min) {
		return n
	}
	return 0
}

func (r Numbers) String() string {
	if r = r.norm(); r.Min == r.Max {
		return fmt.Sprint(r.Min)
	}
	return fmt.Sprintf("%d-%d", r.Min, r.Max)
}

func (r Numbers) norm() Numbers {
	if r == (Numbers{}) {
		return Numbers{1, 1}
	}
	return r
}

// Why is the reason why a node is gone.
type Why string

// The reasons why a node is gone, in rising order of finality.
const (
	Removed Why = "removed" // lost for long, or removed by an operator; may come back
	Left    Why = "left"    // asked to leave; its certificate is no longer valid
	Revoked Why = "revoked" // excluded for good
)

// rank orders reasons by finality; 0 means no reason at all.
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
	Token string `json:"token,omitempty"` // as Member.Token
}

// Key is the state of the gossip key's rotation. The key itself is never in the plan.
type Key struct {
	Serial uint64 `json:"serial"`
	Digest string `json:"digest"`
	// Previous is the digest of the key that is still accepted during a rotation, else
	// empty.
	Previous string `json:"previous,omitempty"`
	// Stale means that a revoked node knows the key, so a new one is due.
	Stale bool `json:"stale,omitempty"`
}

// Digest returns the hex SHA-256 of the whole state except Index. Nodes with the same
// digest hold the same plan.
func (s *State) Digest() string {
	c := *s
	c.Index = 0
	b, err := json.Marshal(c)
	if err != nil {
		// Strings, numbers and times with four-digit years always marshal; apply admits
		// no other times.
		panic(fmt.Sprintf("plan: digest: %v", err))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// MemberByName returns the member with this name.
func (s *State) MemberByName(name string) (Member, bool) {
	for _, m := range s.Members {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// Refused reports whether connections from this id are refused because the node was
// revoked or has left. A node that was merely removed may connect, to be readmitted.
func (s *State) Refused(id string) bool {
	return s.Gone[id].Why.rank() >= Left.rank()
}

// Own returns about how many bytes a state takes that one before it does not share: its maps, and
// histories and shards that have changed.
func (s *State) Own(before *State) int {
	n := (len(s.Members)*size[Member]() + len(s.Gone)*size[Gone]() + len(s.Tokens)*size[Token]() +
		len(s.Datasets)*size[Dataset]() + len(s.Jobs)*size[Job]()) * 2 // a map has free places
	for id, j := range s.Jobs {
		n += others(j.History, before.Jobs[id].History) + others(j.Schedule, before.Jobs[id].Schedule)
	}
	for id, d := range s.Datasets {
		n += others(d.Shards, before.Datasets[id].Shards)
	}
	return n
}

func size[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// others returns the bytes of a list, or 0 if it is the same memory as another one.
func others[T any](list, before []T) int {
	if len(list) == 0 || len(before) >= len(list) && &list[0] == &before[0] {
		return 0
	}
	return len(list) * size[T]()
}
