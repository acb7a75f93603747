package labels

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// mostBytes bounds questions and answers.
const mostBytes = 16 << 20

// most returns how many vertices one question has at most, whose targets are rows of so many
// bytes.
func most(row int) int { return max(1, mostBytes/max(4, row)) }

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
	at   []int  // where their targets begin
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
	learnt    = iota // the targets of vertices that have one
	anyVertex        // of vertices that may have none
	marked           // the parts of the split that vertices are in
)

// Append appends the targets of some training vertices, and asks their owners for those
// that are not here. Each is as many words as dataset.About.Words says. The source must be
// ready.
func (s *Source) Append(ctx context.Context, to []int32, vertices []uint32, tally *peer.Tally) ([]int32, error) {
	return s.append(ctx, to, vertices, learnt, tally)
}

// AppendAny is Append for vertices that may have no target: the words of those are
// graph.NoLabel.
func (s *Source) AppendAny(ctx context.Context, to []int32, vertices []uint32, tally *peer.Tally) ([]int32, error) {
	return s.append(ctx, to, vertices, anyVertex, tally)
}

// AppendMarks appends the marks of some vertices in the graph's split, as Append does their
// targets.
func (s *Source) AppendMarks(ctx context.Context, to []int32, vertices []uint32, tally *peer.Tally) ([]int32, error) {
	return s.append(ctx, to, vertices, marked, tally)
}

// words returns how many words answer a question of this part for a vertex.
func words(part uint32, of *dataset.About) int {
	if part == marked {
		return 1
	}
	return of.Words()
}

// none is each word of the answer where a shard has nothing of a part.
func none(part uint32) int32 {
	if part == marked {
		return int32(graph.Unmarked)
	}
	return graph.NoLabel
}

// local appends what a question of this part is answered by, if it is here.
func (s *Source) local(to []int32, v, part uint32) (answer []int32, here bool) {
	if part != marked {
		return s.data.Target(to, v)
	}
	mark, here := s.data.Mark(v)
	if here {
		to = append(to, mark)
	}
	return to, here
}

func (s *Source) append(ctx context.Context, to []int32, vertices []uint32, part uint32, tally *peer.Tally) ([]int32, error) {
	a, _ := s.askers.Get().(*asker)
	defer s.askers.Put(a)
	for i := range a.owners {
		o := &a.owners[i]
		o.body, o.at, o.err = o.body[:0], o.at[:0], nil
	}
	var asked []int
	row := words(part, &s.data.About)
	for _, v := range vertices {
		first := len(to)
		answer, here := s.local(to, v, part)
		if to = answer; here {
			continue
		}
		to = slices.Grow(to, row)[:first+row]
		n := s.layout.Owner(v)
		if n == s.work.Self && part != learnt { // its shard has none
			for i := first; i < len(to); i++ {
				to[i] = none(part)
			}
			continue
		}
		if n == s.work.Self {
			return nil, fmt.Errorf("ask for the label of vertex %d: its shard is this node's, and has no labels here", v)
		}
		o := &a.owners[n]
		if len(o.at) == 0 {
			asked = append(asked, n)
		}
		o.body, o.at = binary.LittleEndian.AppendUint32(o.body, v), append(o.at, first)
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

// ask asks one owner, and sets the targets or marks in to.
func (s *Source) ask(ctx context.Context, n int, part uint32, o *owner, to []int32, tally *peer.Tally) error {
	row := 4 * words(part, &s.data.About)
	for body, at := o.body, o.at; len(at) > 0; {
		some := min(len(at), most(row))
		q := peer.Query{Service: peer.Labels, Kind: peer.Topology, Part: part, Body: body[:4*some], Limit: row * some, Tally: tally}
		answer, err := s.peers.Ask(ctx, n, q, o.buf)
		if err != nil {
			return err
		}
		o.buf = answer[:0]
		if err := read(to, at[:some], answer, &s.data.About, part); err != nil {
			return fmt.Errorf("the answer of node %s is not usable: %w", s.work.Nodes[n], err)
		}
		body, at = body[4*some:], at[some:]
	}
	return nil
}

// read sets the targets or marks of an answer where they belong.
func read(to []int32, at []int, answer []byte, of *dataset.About, part uint32) error {
	row := words(part, of)
	if len(answer) != 4*row*len(at) {
		return fmt.Errorf("it has %d bytes where %d labels take %d", len(answer), len(at), 4*row*len(at))
	}
	for _, place := range at {
		for c := range row {
			word := binary.LittleEndian.Uint32(answer)
			if err := check(word, of, part); err != nil {
				return err
			}
			to[place+c], answer = int32(word), answer[4:]
		}
	}
	return nil
}

// check returns an error unless a word may be of an answer.
func check(word uint32, of *dataset.About, part uint32) error {
	number := math.Float32frombits(word)
	switch {
	case part == marked && word > uint32(graph.Test):
		return fmt.Errorf("it has the mark %d, and %d is the largest", word, graph.Test)
	case part == marked, part == anyVertex && int32(word) == graph.NoLabel:
		return nil
	case of.Targets == graph.OneClass && uint64(word) >= uint64(of.Classes):
		return fmt.Errorf("it has the label %d of %d classes", int32(word), of.Classes)
	case of.Targets == graph.OneClass || int32(word) == graph.NoLabel:
		return nil
	case of.Targets == graph.YesOrNo && number != 0 && number != 1:
		return fmt.Errorf("it has the target %g where 0 or 1 belongs", number)
	case math.IsNaN(float64(number)) || math.IsInf(float64(number), 0):
		return fmt.Errorf("it has the target %g, which is no number", number)
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
	words := words(q.Part, &s.data.About)
	if len(q.Body)%4 != 0 || len(q.Body) > 4*most(4*words) {
		return fmt.Errorf("%w: a question of %d bytes is not the ids of vertices", peer.ErrRefused, len(q.Body))
	}
	to, _ := s.answers.Get().(*[]byte)
	defer s.answers.Put(to)
	*to = slices.Grow((*to)[:0], len(q.Body)*words)
	row := make([]int32, 0, words)
	for ids := q.Body; len(ids) > 0; ids = ids[4:] {
		v := binary.LittleEndian.Uint32(ids)
		if uint64(v) >= s.data.About.Vertices {
			return fmt.Errorf("%w: there is no vertex %d in a graph of %d", peer.ErrRefused, v, s.data.About.Vertices)
		}
		target, here := s.local(row, v, q.Part)
		if !here && (q.Part == anyVertex || q.Part == marked) {
			for range words {
				target = append(target, none(q.Part))
			}
		}
		if (!here || !slices.ContainsFunc(target, func(word int32) bool { return word != graph.NoLabel })) && q.Part != anyVertex && q.Part != marked {
			return fmt.Errorf("%w: the label of vertex %d is not here", peer.ErrRefused, v)
		}
		for _, word := range target {
			*to = binary.LittleEndian.AppendUint32(*to, uint32(word))
		}
	}
	return reply(*to)
}
