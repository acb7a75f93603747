package labels

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// most bounds the vertices of one question.
const most = 4 << 20

// A Source provides the labels of all vertices, wherever they are. It is safe for
// concurrent use once it is ready.
type Source struct {
	peers  peer.Peers
	ready  chan struct{} // closed by Ready; what follows is fixed then
	data   *dataset.Graph
	work   peer.Work
	layout peer.Layout

	askers  sync.Pool // of *asker
	answers sync.Pool // of *[]byte
}

// An asker is the questions of one call, one for each owner, in memory that is reused.
type asker struct {
	owners []owner
	wait   sync.WaitGroup
}

// An owner is the questions to one node.
type owner struct {
	body []byte // vertices
	at   []int  // where their labels belong
	buf  []byte // the last answer
	err  error
}

// Register registers the service, before peers.Open; questions wait until the source is
// ready.
func Register(peers peer.Peers) *Source {
	s := &Source{peers: peers, ready: make(chan struct{})}
	s.askers.New = func() any { return &asker{owners: make([]owner, s.layout.Nodes)} }
	s.answers.New = func() any { return new([]byte) }
	peers.Answer(peer.Labels, s.answer)
	return s
}

// Ready gives the source its data, once.
func (s *Source) Ready(data *dataset.Graph, work peer.Work, l peer.Layout) {
	s.data, s.work, s.layout = data, work, l
	close(s.ready)
}

// The parts of questions.
const (
	learnt    = iota // the labels of vertices that have one
	anyVertex        // of vertices that may have none
	marked           // the parts of the split that vertices are in
)

// Append appends the labels of some training vertices, and asks their owners for those
// that are not here. The source must be ready.
func (s *Source) Append(ctx context.Context, to []int32, vertices []uint32, tally *peer.Tally) ([]int32, error) {
	return s.append(ctx, to, vertices, learnt, tally)
}

// AppendAny is Append for vertices that may have no label: that of those is graph.NoLabel.
func (s *Source) AppendAny(ctx context.Context, to []int32, vertices []uint32, tally *peer.Tally) ([]int32, error) {
	return s.append(ctx, to, vertices, anyVertex, tally)
}

// AppendMarks appends the marks of some vertices in the graph's split, as Append does their
// labels.
func (s *Source) AppendMarks(ctx context.Context, to []int32, vertices []uint32, tally *peer.Tally) ([]int32, error) {
	return s.append(ctx, to, vertices, marked, tally)
}

// local returns what a question of this part is answered by, if it is here.
func (s *Source) local(v uint32, part uint32) (answer int32, here bool) {
	if part == marked {
		return s.data.Mark(v)
	}
	return s.data.Label(v)
}

func (s *Source) append(ctx context.Context, to []int32, vertices []uint32, part uint32, tally *peer.Tally) ([]int32, error) {
	first := len(to)
	a, _ := s.askers.Get().(*asker)
	defer s.askers.Put(a)
	for i := range a.owners {
		o := &a.owners[i]
		o.body, o.at, o.err = o.body[:0], o.at[:0], nil
	}
	var asked []int
	for i, v := range vertices {
		label, here := s.local(v, part)
		to = append(to, label)
		if here {
			continue
		}
		n := s.layout.Owner(v)
		if n == s.work.Self && part != learnt {
			continue // its shard has none
		}
		if n == s.work.Self {
			return nil, fmt.Errorf("ask for the label of vertex %d: its shard is this node's, and has no labels here", v)
		}
		o := &a.owners[n]
		if len(o.at) == 0 {
			asked = append(asked, n)
		}
		o.body, o.at = binary.LittleEndian.AppendUint32(o.body, v), append(o.at, first+i)
	}
	for _, n := range asked {
		a.wait.Go(func() { a.owners[n].err = s.ask(ctx, n, part, &a.owners[n], to, tally) })
	}
	a.wait.Wait()
	for _, n := range asked {
		if err := a.owners[n].err; err != nil {
			return nil, fmt.Errorf("ask for labels: %w", err)
		}
	}
	return to, nil
}

// ask asks one owner, and sets the labels in to.
func (s *Source) ask(ctx context.Context, n int, part uint32, o *owner, to []int32, tally *peer.Tally) error {
	for body, at := o.body, o.at; len(at) > 0; {
		some := min(len(at), most)
		q := peer.Query{Service: peer.Labels, Kind: peer.Topology, Part: part, Body: body[:4*some], Limit: 4 * some, Tally: tally}
		answer, err := s.peers.Ask(ctx, n, q, o.buf)
		if err != nil {
			return err
		}
		o.buf = answer[:0]
		if err := read(to, at[:some], answer, s.data.About.Classes, part); err != nil {
			return fmt.Errorf("the answer of node %s is not usable: %w", s.work.Nodes[n], err)
		}
		body, at = body[4*some:], at[some:]
	}
	return nil
}

// read sets the labels or marks of an answer where they belong.
func read(to []int32, at []int, answer []byte, classes int, part uint32) error {
	if len(answer) != 4*len(at) {
		return fmt.Errorf("it has %d bytes where %d labels take %d", len(answer), len(at), 4*len(at))
	}
	for i, place := range at {
		label := binary.LittleEndian.Uint32(answer[4*i:])
		switch {
		case part == marked && label > uint32(graph.Test):
			return fmt.Errorf("it has the mark %d, and %d is the largest", label, graph.Test)
		case part == marked, part == anyVertex && int32(label) == graph.NoLabel:
		case uint64(label) >= uint64(classes):
			return fmt.Errorf("it has the label %d of %d classes", int32(label), classes)
		}
		to[place] = int32(label)
	}
	return nil
}

// answer implements peer.Handler.
func (s *Source) answer(ctx context.Context, _ int, q peer.Query, reply func(parts ...[]byte) error) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if len(q.Body)%4 != 0 || len(q.Body) > 4*most {
		return fmt.Errorf("%w: a question of %d bytes is not the ids of vertices", peer.ErrRefused, len(q.Body))
	}
	to, _ := s.answers.Get().(*[]byte)
	defer s.answers.Put(to)
	*to = slices.Grow((*to)[:0], len(q.Body))
	for ids := q.Body; len(ids) > 0; ids = ids[4:] {
		v := binary.LittleEndian.Uint32(ids)
		if uint64(v) >= s.data.About.Vertices {
			return fmt.Errorf("%w: there is no vertex %d in a graph of %d", peer.ErrRefused, v, s.data.About.Vertices)
		}
		label, here := s.local(v, q.Part)
		if (!here || label < 0) && q.Part != anyVertex && q.Part != marked {
			return fmt.Errorf("%w: the label of vertex %d is not here", peer.ErrRefused, v)
		}
		*to = binary.LittleEndian.AppendUint32(*to, uint32(label))
	}
	return reply(*to)
}
