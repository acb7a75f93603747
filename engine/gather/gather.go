package gather

import (
	"context"
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A Source is the features of all vertices, wherever they are. Many goroutines may use
// it once it is ready.
type Source struct {
	peers strategy.Peers
	ready chan struct{} // closed by Ready; what follows does not change after

	store  *features.Store
	form   features.Form
	work   strategy.Work
	layout strategy.Layout
	most   most
	hot    hot
	kept   features.Far // the rows of hot

	mu     sync.Mutex
	tables []*table  // that nobody uses
	spare  sync.Pool // of *[]byte: answers that are given
}

// most is what is asked at once: bytes of questions, and of answers. All nodes have the
// same.
type most struct{ question, answer int }

// Register registers the service. Before peers.Open only; questions wait until the
// source is ready.
func Register(peers strategy.Peers) *Source {
	s := &Source{peers: peers, ready: make(chan struct{}), most: most{16 << 20, 256 << 20}}
	peers.Answer(strategy.Rows, s.answer)
	return s
}

// Ready gives the source its data, once: which rows are here is the store's word (Has),
// the others are asked of their owners. wire is how features travel (features.Form).
func (s *Source) Ready(store *features.Store, work strategy.Work, l strategy.Layout, wire string) error {
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

// Options say how rows are asked for.
type Options struct {
	Apart    bool // each set by itself, one after the other
	Repeated bool // a row as often as it stands in sets, and not once
}

// Rows are the rows of some sets of vertices, in memory that is used again. One
// goroutine at a time uses it.
type Rows struct {
	// Far are those that came from other nodes.
	Far features.Far
	// Places are, for each set, where the row of each vertex is: as features.Store
	// wants to be asked.
	Places [][]uint32
	// Local, Cached and Remote count rows: distinct ones, but as often as they came
	// where they were asked for repeatedly or apart.
	Local, Cached, Remote int

	plan  plan
	asks  []*ask
	used  int // of asks
	dense []byte
	wait  sync.WaitGroup
	until until
}

// Gather finds all rows of the sets, each of which has distinct vertices, and brings
// those that are elsewhere. The source is ready.
func (s *Source) Gather(ctx context.Context, r *Rows, sets [][]uint32, epoch, step uint32, o Options, tally *strategy.Tally) error {
	if err := s.gather(ctx, r, sets, epoch, step, o, tally); err != nil {
		return fmt.Errorf("gather rows of features for epoch %d, step %d: %w", epoch, step+1, err)
	}
	return nil
}

func (s *Source) gather(ctx context.Context, r *Rows, sets [][]uint32, epoch, step uint32, o Options, tally *strategy.Tally) error {
	r.Far.Kept = nil
	if s.kept.Rows() > 0 {
		r.Far.Kept = &s.kept
	}
	if err := s.lay(r, sets, o); err != nil {
		return err
	}
	return s.bring(ctx, r, strategy.Query{
		Service: strategy.Rows, Kind: strategy.Feature, Epoch: epoch, Step: step, Part: s.form.Code(), Tally: tally,
	})
}
