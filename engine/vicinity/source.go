package vicinity

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A Source is the edges and the features of all vertices, wherever they are. Many
// goroutines may use it once it is ready.
type Source struct {
	peers strategy.Peers
	ready chan struct{} // closed by Ready; what follows does not change after

	held   []*graph.Shard // nil where they are elsewhere
	store  *features.Store
	form   features.Form
	rows   *gather.Source // nil where all are here
	work   strategy.Work
	layout strategy.Layout
	most   most
}

// most is what is asked at once: bytes of questions, and of answers. All nodes have the
// same.
type most struct{ question, answer int }

var mostAtOnce = most{16 << 20, 256 << 20}

// Register registers the service. Before peers.Open only; questions wait until the
// source is ready.
func Register(peers strategy.Peers) *Source {
	s := &Source{peers: peers, ready: make(chan struct{}), most: mostAtOnce}
	peers.Answer(strategy.Contexts, s.answer)
	return s
}

// Alone is the source of a node that holds all shards.
func Alone(held []*graph.Shard, store *features.Store, l strategy.Layout) *Source {
	return &Source{held: held, store: store, layout: l}
}

// Ready gives the source its data, once. Rows of features that are elsewhere are asked of
// rows.
func (s *Source) Ready(held []*graph.Shard, store *features.Store, rows *gather.Source, work strategy.Work, l strategy.Layout, wire string) (err error) {
	if s.form, err = store.Form(wire); err != nil {
		return err
	}
	s.held, s.store, s.rows, s.work, s.layout = held, store, rows, work, l
	close(s.ready)
	return nil
}

// shard is the shard of a vertex, if its edges are here.
func (s *Source) shard(v uint32) *graph.Shard {
	shard := s.held[s.layout.Shard(v)]
	if shard == nil || shard.Indptr == nil {
		return nil
	}
	return shard
}

// answer implements strategy.Handler: edges of vertices that are here.
func (s *Source) answer(ctx context.Context, _ int, q strategy.Query, reply func(parts ...[]byte) error) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	asked, err := readQuestion(q.Body, s.layout.Vertices())
	if err != nil {
		return fmt.Errorf("%w: %w", strategy.ErrRefused, err)
	}
	w, err := s.write(&asked)
	if err != nil {
		return fmt.Errorf("%w: %w", strategy.ErrRefused, err)
	}
	return reply(w.head(), w.rows, w.sources, w.weights)
}

// write makes an answer: of as many rows as it has room for.
func (s *Source) write(q *question) (*writer, error) {
	w := &writer{}
	for _, r := range q.runs {
		for v := r.First; v < r.End; {
			shard := s.shard(v)
			if shard == nil {
				return nil, fmt.Errorf("the edges of vertex %d are not here", v)
			}
			if w.n == 0 {
				w.weighted = shard.Weights != nil // of all shards of a graph, or of none
			}
			for end := min(r.End, shard.First+uint32(shard.Vertices)); v < end; v++ {
				sources, weights := rowOf(shard, v)
				if n := RowBytes + 2*EntryBytes*len(sources); w.size()+n > s.most.answer {
					if w.n == 0 {
						return nil, fmt.Errorf("vertex %d has %d edges, which are more than fit one answer", v, len(sources))
					}
					return w, nil
				}
				w.add(v, sources, weights, q.within)
			}
		}
	}
	return w, nil
}

// rowOf is the in-edges of a vertex of a shard.
func rowOf(s *graph.Shard, v uint32) (sources []int32, weights []float32) {
	from, to := s.Indptr[v-s.First], s.Indptr[v-s.First+1]
	if s.Weights != nil {
		weights = s.Weights[from:to]
	}
	return s.Indices[from:to], weights
}
