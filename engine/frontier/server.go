package frontier

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// AnyFanout is the epoch of questions by other fan-outs than the job's, of vertices that are
// no part of its epochs, which count from 1.
const AnyFanout = 0

// A Server answers questions for the rows of vertices whose edges are local.
type Server struct {
	once    sync.Once
	ready   chan struct{}
	t       *sample.Topology
	o       sample.Options
	drawers sync.Pool
}

// A drawer holds the state of one question at a time.
type drawer struct {
	*sample.Drawer
	vertices []uint32
	drawn    sample.Drawn
	head     [header]byte
	ends     []float32
}

// Serve registers the service, before peers.Open. Questions wait until Ready.
func Serve(peers peer.Peers) *Server {
	s := &Server{ready: make(chan struct{})}
	s.drawers.New = func() any { return &drawer{Drawer: sample.NewDrawer(s.t, s.o)} }
	peers.Answer(peer.Draws, s.answer)
	return s
}

// Ready sets the topology and the options of sampling: all nodes of a job have the same
// fan-outs and the same seed. Only the first call counts.
func (s *Server) Ready(t *sample.Topology, o sample.Options) {
	s.once.Do(func() {
		s.t, s.o = t, o
		close(s.ready)
	})
}

func (s *Server) answer(ctx context.Context, _ int, q peer.Query, reply func(parts ...[]byte) error) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	d, _ := s.drawers.Get().(*drawer)
	defer s.drawers.Put(d)
	if q.Part == ends {
		if err := d.inverses(q); err != nil {
			return fmt.Errorf("%w: say degrees: %w", peer.ErrRefused, err)
		}
		return reply(raw(d.ends))
	}
	if err := d.draw(ctx, q); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx) // it is no reason not to ask again
		}
		return fmt.Errorf("%w: draw rows of hop %d: %w", peer.ErrRefused, q.Part, err)
	}
	parts := encode(&d.drawn, &d.head)
	return reply(parts[:]...)
}

// check returns an error unless a question names vertices.
func check(q peer.Query) error {
	if len(q.Body) <= prefix || len(q.Body) > mostBody || len(q.Body)%4 != 0 {
		return fmt.Errorf("a question of %d bytes is none", len(q.Body))
	}
	return nil
}

// read lists the vertices of a question.
func (d *drawer) read(q peer.Query) {
	d.vertices = d.vertices[:0]
	for at := prefix; at < len(q.Body); at += 4 {
		d.vertices = append(d.vertices, binary.LittleEndian.Uint32(q.Body[at:]))
	}
}

// inverses answers a question for degrees.
func (d *drawer) inverses(q peer.Query) error {
	if err := check(q); err != nil {
		return err
	}
	d.read(q)
	d.ends = slices.Grow(d.ends[:0], len(d.vertices))[:len(d.vertices)]
	return d.Inverses(d.vertices, d.ends)
}

// draw parses a question and samples its rows.
func (d *drawer) draw(ctx context.Context, q peer.Query) error {
	if err := check(q); err != nil {
		return err
	}
	got := binary.LittleEndian.Uint32(q.Body)
	if got > math.MaxInt32 || q.Part > math.MaxInt32 {
		return fmt.Errorf("a fan-out of %d was asked for at hop %d: the numbers are too large", got, q.Part)
	}
	fanout, ok := d.Fanout(int(q.Part))
	if q.Epoch != AnyFanout && (!ok || int(got) != fanout) {
		return fmt.Errorf("a fan-out of %d was asked for, which is not that of the hop: the nodes differ in the job's recipe", got)
	}
	d.read(q)
	// The asker is charged for what it takes at most. Entries take four bytes at least.
	rest := q.Limit - header - 4*len(d.vertices)
	if rest < 0 {
		return fmt.Errorf("%d rows were asked for, which do not fit in an answer of %d bytes", len(d.vertices), q.Limit)
	}
	most := min(mostEntries(len(d.vertices)), rest/4)
	if q.Epoch != AnyFanout {
		_, err := d.Draw(ctx, &d.drawn, uint64(q.Epoch), uint64(q.Step), int(q.Part), d.vertices, most)
		return err
	}
	_, err := d.DrawBy(int(got), &d.drawn, uint64(q.Epoch), uint64(q.Step), int(q.Part), d.vertices, most)
	return err
}
