package gather

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// A Source provides the features of all vertices, wherever they are. It is safe for
// concurrent use once it is ready.
type Source struct {
	peers peer.Peers
	ready chan struct{} // closed by Ready; what follows is fixed then

	served
	work   peer.Work
	layout peer.Layout
	most   most
	hot    hot
	kept   features.Far // the rows of hot
	rows   []byte       // of kept, where rows come one by one
	room   []byte       // the mapping that they lie in

	coming coming

	mu     sync.Mutex
	tables []*seen   // free ones
	spare  sync.Pool // of *answer
}

// served is what a source serves.
type served struct {
	store *features.Store
	form  features.Form
	gate  Gate // of rows that change; nil: they don't
}

// coming counts rows that are to be kept.
type coming struct {
	awaited int64 // 0: none, or all have come
	came    atomic.Int64
	pace    pace
	read    sync.RWMutex // locked for reading by those who read rows that are kept beside the steps
}

// most bounds the bytes of a question and of an answer. All nodes have the same.
type most struct{ question, answer int }

// mostQuestion and mostAnswer bound the bytes of a question and of an answer.
const (
	mostQuestion = 16 << 20
	mostAnswer   = 256 << 20
)

// A Gate has questions wait for rows that change until these are as they are to be read. Between Enter,
// unless it fails, and Leave they do not change.
type Gate interface {
	Enter(ctx context.Context, epoch, step uint32) error
	Leave()
}

// Guard sets the gate of rows that change, before Ready.
func (s *Source) Guard(g Gate) { s.gate = g }

// Register registers the service, before peers.Open; questions wait until the source is
// ready.
func Register(peers peer.Peers) *Source {
	s := &Source{peers: peers, ready: make(chan struct{}), most: most{mostQuestion, mostAnswer}}
	peers.Answer(peer.Rows, s.answer)
	return s
}

// Ready gives the source its data, once. The store has the local rows (Has); the others
// are requested from their owners. wire is the form in which features travel
// (features.Form).
func (s *Source) Ready(store *features.Store, work peer.Work, l peer.Layout, wire string) error {
	form, err := store.Form(wire)
	if err != nil {
		return err
	}
	if !form.Sparse() && form.RowBytes() > s.most.answer {
		return fmt.Errorf("a row of features takes %d bytes, more than the %d that an answer may have", form.RowBytes(), s.most.answer)
	}
	if l.Vertices() != store.Vertices() || len(l.Owners) != len(l.Firsts)-1 {
		return fmt.Errorf("the layout is of %d vertices, the features are of %d", l.Vertices(), store.Vertices())
	}
	for shard, owner := range l.Owners {
		if owner < 0 || owner >= len(work.Nodes) {
			return fmt.Errorf("shard %d is owned by node %d of %d", shard, owner, len(work.Nodes))
		}
		if first := l.Firsts[shard]; owner == work.Self && first < l.Firsts[shard+1] && !store.Has(first) {
			return fmt.Errorf("shard %d is owned by this node, which does not have its features", shard)
		}
	}
	s.store, s.form, s.work, s.layout = store, form, work, l
	close(s.ready)
	return nil
}

// Options are how rows are requested.
type Options struct {
	Apart    bool // each set separately, one after the other
	Repeated bool // a row as often as it occurs in sets, not once
}

// Rows are the rows of some sets of vertices, in memory that is reused. One goroutine
// at a time uses it.
type Rows struct {
	// Far are those that came from other nodes.
	Far features.Far
	// Places are, for each set, the place of each vertex's row in features.Store.
	Places [][]uint32
	// Local, Cached and Remote count rows: distinct ones, but as often as they came
	// where they were requested repeatedly or apart.
	Local, Cached, Remote int

	plan  plan
	asks  []*ask
	used  int // of asks
	dense []byte
	wait  sync.WaitGroup
	until until
}

// Gather finds all rows of the sets, each of which has distinct vertices, and fetches
// remote ones. The source must be ready.
func (s *Source) Gather(ctx context.Context, r *Rows, sets [][]uint32, epoch, step uint32, o Options, tally *peer.Tally) error {
	if err := s.gather(ctx, r, sets, epoch, step, o, tally); err != nil {
		return fmt.Errorf("gather rows of features for epoch %d, step %d: %w", epoch, step+1, err)
	}
	return nil
}

func (s *Source) gather(ctx context.Context, r *Rows, sets [][]uint32, epoch, step uint32, o Options, tally *peer.Tally) error {
	r.Far.Kept = nil
	if s.kept.Rows() > 0 {
		r.Far.Kept = &s.kept
	}
	if err := s.lay(r, sets, o); err != nil {
		return err
	}
	err := s.bring(ctx, r, peer.Query{
		Service: peer.Rows, Kind: peer.Feature, Epoch: epoch, Step: step, Part: s.form.Code(), Tally: tally,
	})
	if err == nil {
		s.keep(r)
	}
	return err
}
