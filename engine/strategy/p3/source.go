package p3

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// A Source provides the features of all vertices by columns, wherever they are. It is
// safe for concurrent use once it is ready.
type Source struct {
	peers peer.Peers
	ready chan struct{} // closed by Ready; what follows is fixed then

	store *features.Store
	form  features.Form
	most  int // bound of an answer's bytes

	spare sync.Pool // of *cutter
}

// mostAnswer bounds the bytes of columns in one answer.
const mostAnswer = 64 << 20

// Register registers the service, before peers.Open; questions wait until the source is
// ready.
func Register(peers peer.Peers) *Source {
	s := newSource(peers)
	peers.Answer(peer.Columns, s.answer)
	return s
}

// Alone returns the source of a single node.
func Alone(store *features.Store, wire string) (*Source, error) {
	s := newSource(nil)
	return s, s.Ready(store, wire)
}

func newSource(peers peer.Peers) *Source {
	return &Source{peers: peers, ready: make(chan struct{}), most: mostAnswer}
}

// Ready gives the source its data, once. wire is the form in which features travel
// (features.Form), and are kept: a node's own rows are rounded as others see them.
func (s *Source) Ready(store *features.Store, wire string) error {
	form, err := store.Form(wire)
	if err != nil {
		return err
	}
	if !form.Sparse() && form.RowBytes() > s.most {
		return fmt.Errorf("a row of features takes %d bytes, more than the %d that an answer may have", form.RowBytes(), s.most)
	}
	s.store, s.form = store, form
	close(s.ready)
	return nil
}

// A question is for columns of consecutive vertices.
type question struct {
	first, rows uint32
	columns     span
}

const questionSize = 16

func (q question) body() (to []byte) {
	for _, n := range []uint32{q.first, q.rows, uint32(q.columns.first), uint32(q.columns.cols)} {
		to = binary.LittleEndian.AppendUint32(to, n)
	}
	return to
}

// read parses and checks a question of another node.
func (s *Source) read(q *peer.Query) (question, error) {
	switch {
	case q.Part != s.form.Code():
		return question{}, fmt.Errorf("%w: columns of features are asked for in form %#x and are in form %#x here: all nodes need the same settings and program", peer.ErrRefused, q.Part, s.form.Code())
	case len(q.Body) != questionSize:
		return question{}, fmt.Errorf("%w: a question of %d bytes is not one for columns", peer.ErrRefused, len(q.Body))
	}
	at := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(q.Body[4*i:])) }
	if at(0)+at(1) > uint64(s.store.Vertices()) || at(2)+at(3) > uint64(s.store.Columns()) || at(3) == 0 {
		return question{}, fmt.Errorf("%w: columns %d to %d of the vertices %d to %d are not in the features of this graph",
			peer.ErrRefused, at(2), at(2)+at(3), at(0), at(0)+at(1))
	}
	return question{uint32(at(0)), uint32(at(1)), span{int(at(2)), int(at(3))}}, nil
}

// answer implements peer.Handler: it sends columns of local vertices.
func (s *Source) answer(ctx context.Context, _ int, q peer.Query, reply func(parts ...[]byte) error) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	asked, err := s.read(&q)
	if err != nil {
		return err
	}
	for v := asked.first; v < asked.first+asked.rows; v++ {
		if !s.store.Has(v) {
			return fmt.Errorf("%w: the features of vertex %d are not here", peer.ErrRefused, v)
		}
	}
	c := s.cutter()
	defer s.spare.Put(c)
	if err := c.cut(s, asked); err != nil {
		return fmt.Errorf("%w: %w", peer.ErrRefused, err)
	}
	return reply(c.answer)
}

func (s *Source) cutter() *cutter {
	if c, ok := s.spare.Get().(*cutter); ok {
		return c
	}
	return &cutter{}
}
