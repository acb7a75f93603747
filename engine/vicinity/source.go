package vicinity

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// A Source provides the edges and the features of all vertices, wherever they are. It
// is safe for concurrent use once it is ready.
type Source struct {
	peers peer.Peers
	ready chan struct{} // closed by Ready; what follows is fixed then

	held   []*graph.Shard // nil where they are remote
	store  *features.Store
	form   features.Form
	rows   *gather.Source // nil where all are local
	work   peer.Work
	layout peer.Layout
	most   most
	// relations is how many there are, which edges come with in place of weights; 0: they don't.
	relations int
	related   bool   // edges have relations, and so a row may have a source several times
	edges     uint64 // of the graph; 0: not known
}

// most bounds the bytes of a question and of an answer: all nodes have the same. An answer
// ends before usual, where it has a row; rows is about how many bytes of features are
// brought at once.
type most struct{ question, answer, usual, rows int }

var mostAtOnce = most{16 << 20, 256 << 20, 2 << 20, 4 << 20}

// Register registers the service, before peers.Open; questions wait until the source is
// ready.
func Register(peers peer.Peers) *Source {
	s := &Source{peers: peers, ready: make(chan struct{}), most: mostAtOnce}
	peers.Answer(peer.Contexts, s.answer)
	return s
}

// Alone returns the source of a node that holds all shards.
func Alone(held []*graph.Shard, store *features.Store, l peer.Layout) *Source {
	return &Source{held: held, store: store, layout: l}
}

// Relate has edges come with their relations, of so many, in place of weights, as models that tell
// relations apart take them. It is called before Ready, on all nodes of a run or on none.
func (s *Source) Relate(relations int) { s.relations = relations }

// Ready gives the source its data, once. Remote rows of features are requested through
// rows. edges is how many the graph has, or 0: the rows that a node is asked for at once have no
// more together, since their vertices are distinct.
func (s *Source) Ready(held []*graph.Shard, edges uint64, store *features.Store, rows *gather.Source, work peer.Work, l peer.Layout, wire string) (err error) {
	if s.form, err = store.Form(wire); err != nil {
		return err
	}
	s.held, s.edges, s.store, s.rows, s.work, s.layout = held, edges, store, rows, work, l
	// All shards are alike. A node without any can't know.
	s.related = !slices.ContainsFunc(held, func(of *graph.Shard) bool { return of != nil && of.Related == nil })
	close(s.ready)
	return nil
}

// shard returns the shard of a vertex, if its edges are local.
func (s *Source) shard(v uint32) *graph.Shard {
	shard := s.held[s.layout.Shard(v)]
	if shard == nil || shard.Indptr == nil {
		return nil
	}
	return shard
}

// answer implements peer.Handler: it sends edges of local vertices.
func (s *Source) answer(ctx context.Context, _ int, q peer.Query, reply func(parts ...[]byte) error) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	asked, err := readQuestion(q.Body, s.layout.Vertices())
	if err != nil {
		return fmt.Errorf("%w: %w", peer.ErrRefused, err)
	}
	w, err := s.write(&asked)
	if err != nil {
		return fmt.Errorf("%w: %w", peer.ErrRefused, err)
	}
	return reply(w.head(), w.rows, w.sources, w.weights)
}

// write makes an answer with as many rows as it has room for.
func (s *Source) write(q *question) (*writer, error) {
	w := &writer{}
	for _, r := range q.runs {
		for v := r.First; v < r.End; {
			shard := s.shard(v)
			if shard == nil {
				return nil, fmt.Errorf("the edges of vertex %d are not here", v)
			}
			if w.n == 0 {
				w.weighted = s.weightsOf(shard) != nil // of all shards of a graph, or of none
			}
			for end := min(r.End, shard.First+uint32(shard.Vertices)); v < end; v++ {
				sources, weights := s.rowOf(shard, v)
				switch n := RowBytes + 2*EntryBytes*len(sources); {
				case w.n > 0 && w.size()+n > s.most.usual:
					return w, nil
				case w.size()+n > s.most.answer:
					return nil, fmt.Errorf("vertex %d has %d edges, which are more than fit one answer", v, len(sources))
				}
				w.add(v, sources, weights, q.within)
			}
		}
	}
	return w, nil
}

// rowOf returns the in-edges of a vertex of a shard.
func (s *Source) rowOf(shard *graph.Shard, v uint32) (sources []int32, weights []float32) {
	from, to := shard.Indptr[v-shard.First], shard.Indptr[v-shard.First+1]
	if all := s.weightsOf(shard); all != nil {
		weights = all[from:to]
	}
	return shard.Indices[from:to], weights
}

// weightsOf returns what edges of a shard come with; nil: nothing.
func (s *Source) weightsOf(shard *graph.Shard) []float32 {
	if s.relations > 0 && shard.Related != nil {
		return shard.Related.Of
	}
	return shard.Weights
}
