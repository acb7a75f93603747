package api

import "time"

// Member is one node as `hopmesh members` shows it.
type Member struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Address string `json:"address"`
	Status  string `json:"status"` // alive, failed or left
	Role    string `json:"role"`   // leader, voter or nonvoter
	Device  string `json:"device"`
	Shards  int    `json:"shards"`
	Version string `json:"version"`
	// Numbers are what its program works with, each such as "1" or "1-2"; nil if that is
	// not known.
	Numbers *Numbers `json:"numbers,omitempty"`
	// Unlike says why the asked node can't work with this one, if their versions have
	// nothing in common: a sentence that begins after the node's name.
	Unlike string `json:"unlike,omitempty"`
}

// Numbers are what versions of hopmesh must have in common to work together: what they speak on
// the wire, keep on disk, which bits they compute, and which commands of the plan they know.
type Numbers struct {
	Wire      string `json:"wire"`
	Disk      string `json:"disk"`
	Computing string `json:"computing"`
	Plan      string `json:"plan,omitempty"` // "": the node did not say it yet
}

// NodeVitals is how a node is at this moment, by its own account.
type NodeVitals struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	// MemoryUsed is what its process holds by itself, without files that it maps, in bytes;
	// 0: unknown. MemoryBound is what --memory or the machine allows; 0: not bounded.
	MemoryUsed  uint64 `json:"memory_used"`
	MemoryBound uint64 `json:"memory_bound"`
	// Links are its connections, one entry a peer.
	Links []Link `json:"links"`
	// Error says why nothing is known, in which case the rest is zero.
	Error string `json:"error,omitempty"`
}

// Link is what goes from one node to another and back, counted between the last two times that
// somebody asked, at least a second apart.
type Link struct {
	To                string  `json:"to"`
	RTTSeconds        float64 `json:"rtt_seconds"` // 0: unknown
	SentPerSecond     float64 `json:"sent_per_second"`
	ReceivedPerSecond float64 `json:"received_per_second"`
}

// Status is one node's view of the state of the mesh.
type Status struct {
	Node       string `json:"node"`
	Leader     string `json:"leader"` // name, "" while there is none
	Generation uint64 `json:"generation"`
	// Ready reports whether a leader is known and this node is in the plan.
	Ready   bool `json:"ready"`
	Members int  `json:"members"`
	Jobs    int  `json:"jobs"` // running ones
	// Device is the device that this node computes on, and DeviceReason why it was
	// chosen.
	Device       string `json:"device"`
	DeviceReason string `json:"device_reason"`
	// Training summarizes each running job.
	Training []JobSummary `json:"training"`
	// Problems are sentences, without a full stop, about what is wrong and what to do. A
	// ready node may have some.
	Problems []string `json:"problems"`
	// Damage is what nodes found damaged, or have repaired since. In JSON it stands in
	// problems, after the sentences.
	Damage []Damage `json:"-"`
}

// Plan is the plan in force, as this node knows it.
type Plan struct {
	Index      uint64       `json:"index"`
	Generation uint64       `json:"generation"`
	MeshID     string       `json:"mesh_id"`
	Leader     string       `json:"leader"`
	Members    []PlanMember `json:"members"`
	Gone       []PlanGone   `json:"gone"`
	Jobs       []JobSummary `json:"jobs"`
	Tokens     int          `json:"tokens"`
	Key        PlanKey      `json:"key"`
	// Digest is equal on nodes that hold equal plans.
	Digest string `json:"digest"`
	// Needs is the newest command that the plan has made use of: who knows none as new can't
	// follow it.
	Needs int `json:"needs,omitempty"`
}

// PlanMember is a node that the plan assigns work to.
type PlanMember struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Role    string `json:"role"`
	Device  string `json:"device"`
	Version string `json:"version"`
	Memory  uint64 `json:"memory"` // bytes, 0: no bound
	Leaving bool   `json:"leaving"`
}

// PlanGone is a node that has left the plan.
type PlanGone struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Why  string `json:"why"` // left, removed or revoked
}

// PlanKey is the state of the gossip key. The key itself is in no plan.
type PlanKey struct {
	Serial   uint64 `json:"serial"`
	Rotating bool   `json:"rotating"`
}

// Token is a new join token. It can't be shown again.
type Token struct {
	ID    string `json:"id"`
	Token string `json:"token"`
	// Join is the command that adds the next machine to the mesh.
	Join    string     `json:"join"`
	Expires *time.Time `json:"expires"` // null: never
}

// TokenInfo is what the mesh stores about a token.
type TokenInfo struct {
	ID      string     `json:"id"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires"` // null: never
	// Owner is the node that it was asked of; "" if that was not noted.
	Owner string `json:"owner"`
	// Uses is how many nodes it admits, of which Left are left; null: any number. Used is
	// how many it has admitted, and Nodes are their names.
	Uses  *uint64  `json:"uses"`
	Left  *uint64  `json:"left"`
	Used  uint64   `json:"used"`
	Nodes []string `json:"nodes"`
}

// CA is the mesh's certificate authority.
type CA struct {
	Serial      uint64     `json:"serial"`      // how many have succeeded the founder's
	Fingerprint string     `json:"fingerprint"` // hex SHA-256 of its public key
	Named       *time.Time `json:"named"`       // null: it is the founder's
	Key         bool       `json:"key"`         // the node that answers holds its key
	// Replacing says that the one before is still trusted. Waiting are the names of the nodes
	// that have no certificate of this one, as far as the node that answers can tell.
	Replacing bool     `json:"replacing"`
	Waiting   []string `json:"waiting"`
}

// TokenRequest asks for a token.
type TokenRequest struct {
	TTL  string `json:"ttl,omitempty"`  // such as "24h"; "" or "0": for ever
	Uses uint64 `json:"uses,omitempty"` // how many nodes it admits; 0: any number
}

// Check returns an error if no node would accept the request.
func (r TokenRequest) Check() error {
	_, err := lifeOf(r.TTL)
	return err
}

// lifeOf returns how long a token lives, 0 being for ever.
func lifeOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, Invalid("a token can't live for %q: give a duration such as 24h, or 0 for ever", text)
	}
	return d, nil
}

// JoinRequest asks a node that is in no mesh to join one.
type JoinRequest struct {
	Peers []string `json:"peers"` // HOST:PORT of members
	Token string   `json:"token"`
}

// ForceLeaveRequest asks the mesh to remove a node.
type ForceLeaveRequest struct {
	Name   string `json:"name"`             // name or id
	Revoke bool   `json:"revoke,omitempty"` // also if it is alive, and permanently
}

// Check returns an error if no node would accept the request.
func (r ForceLeaveRequest) Check() error {
	if r.Name == "" {
		return Invalid("the request names no node")
	}
	return nil
}

// ForcedOut is the answer to a ForceLeaveRequest.
type ForcedOut struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Tokens are the ids of the tokens that the revoked node may have known, which have
	// ended.
	Tokens []string `json:"tokens"`
	// APITokens are those of the tokens of the API that have ended with it, which are all.
	APITokens []string `json:"api_tokens,omitempty"`
	// Join is the command that adds a machine from now on; "" if no token ended, or no new
	// one could be made.
	Join    string     `json:"join,omitempty"`
	Expires *time.Time `json:"expires,omitempty"` // of that command's token
	// Warning says what the revocation can't take from the node; "" if nothing.
	Warning string `json:"warning,omitempty"`
}

// Done is the answer if an operation has no other result.
type Done struct {
	Name string `json:"name,omitempty"` // the node or dataset concerned
	ID   string `json:"id,omitempty"`   // the token concerned
	OK   bool   `json:"ok"`
}

// Check is one condition for a node to be ready.
type Check struct {
	Name   string
	OK     bool
	Detail string
}

// Event is something that happened in the mesh, as this node saw it.
type Event struct {
	Time       time.Time `json:"time"`
	Type       string    `json:"type"` // member, leader or plan
	Node       string    `json:"node"`
	Message    string    `json:"message"`
	Generation uint64    `json:"generation"`
}

// LogLine is one line of a node's log.
type LogLine struct {
	Time    time.Time         `json:"time"`
	Level   string            `json:"level"`
	Message string            `json:"message"`
	Attrs   map[string]string `json:"attrs"`
}
