package strategy

// The strategies.
const (
	Auto    = "auto"
	Single  = "single"
	Centric = "centric"
	Leap    = "leap"
	P3      = "p3"
	Grappa  = "grappa"
	Pipe    = "pipe"
	Graph   = "graph"
	Local   = "local"
)

// Settings are how a job is shared, as stored in its recipe. The zero Settings are
// those of single.
type Settings struct {
	Strategy string `json:"strategy"`
	// Deterministic adds gradients up by grains, in a fixed binary tree over shards:
	// the weights are the same bits on any number of nodes.
	Deterministic bool            `json:"deterministic,omitempty"`
	Wire          string          `json:"wire,omitempty"`     // format of sent features: bf16; "": as they are stored
	Topology      string          `json:"topology,omitempty"` // replicated, sharded or auto, which is ""
	Centric       CentricSettings `json:"centric,omitzero"`
	Leap          LeapSettings    `json:"leap,omitzero"`
	P3            P3Settings      `json:"p3,omitzero"`
	Grappa        GrappaSettings  `json:"grappa,omitzero"`
	Pipe          PipeSettings    `json:"pipe,omitzero"`
	Local         LocalSettings   `json:"local,omitzero"`
}

// CentricSettings are those of centric.
type CentricSettings struct {
	Cache int `json:"cache,omitempty"` // rows of other nodes to cache: those that most edges come from
}

// LeapSettings are those of leap.
type LeapSettings struct {
	Mode      string `json:"mode,omitempty"`       // auto (which is ""), stay or migrate
	Apart     bool   `json:"apart,omitempty"`      // leap.pregather=off: each group's rows are requested separately
	Repeated  bool   `json:"repeated,omitempty"`   // leap.dedup=off: rows are requested as often as they are used
	Merge     string `json:"merge,omitempty"`      // auto (which is ""), off, or the number of slots
	Uneven    bool   `json:"uneven,omitempty"`     // leap.balance=off: owners compute all of their shards' roots
	SyncEvery int    `json:"sync_every,omitempty"` // local updates between two reductions; 0 and 1: none
	Cache     int    `json:"cache,omitempty"`      // as that of CentricSettings
}

// P3Settings are those of p3.
type P3Settings struct {
	Inflight int    `json:"inflight,omitempty"` // batches under way; 0 and 1: exact
	Roots    string `json:"roots,omitempty"`    // grain (which is ""): owners compute them; or slices
	Push     string `json:"push,omitempty"`     // resample (which is ""): each node samples all blocks; or blocks, which are sent
}

// LocalSettings are those of local.
type LocalSettings struct {
	Average int `json:"average_every,omitempty"` // steps between averages; 0: usualAverage
}

const usualAverage = 8

// Steps returns how many steps lie between two averages.
func (s *LocalSettings) Steps() int { return usual(s.Average, usualAverage) }

// Cached returns how many rows of other nodes a strategy caches.
func (s *Settings) Cached(strategy string) int {
	switch strategy {
	case Centric:
		return s.Centric.Cache
	case Leap:
		return s.Leap.Cache
	}
	return 0
}

// MostInflight is how many batches of p3 may be under way at once.
const MostInflight = 4

// Pipelined reports whether steps may be computed with weights older than the last
// update.
func (s *P3Settings) Pipelined() bool { return s.Inflight > 1 }

// Sliced reports whether each node computes a slice of the batch, whoever owns its
// roots.
func (s *P3Settings) Sliced() bool { return s.Roots == sliced }

// Pushed reports whether nodes are sent the blocks of others even where they could
// sample them.
func (s *P3Settings) Pushed() bool { return s.Push == blocks }
