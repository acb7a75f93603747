//go:build cuda

package sample

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// resident is a topology in the GPU's memory. Memory that a form does not need is empty.
type resident struct {
	vertices int
	edges    int64

	indptr, indices, weights, loops, inverse driver.Memory
}

var (
	errPartial = errors.New("the edges of some vertices are on other nodes: sample on the processor")
	errRoom    = errors.New("the graph is not in the GPU's memory: sample on the processor")
)

// mostVertices is the maximum number of vertices for which the table of their numbers,
// which has 32-bit indices, has room.
const mostVertices = 1 << 30

// stagedBytes is how many bytes are copied to the GPU at a time.
const stagedBytes = 4 << 20

// send copies a topology, with the arrays that the form needs.
func (g *resident) send(on *driver.Thread, t *sample.Topology, form sample.Form) error {
	g.vertices, g.edges = t.Vertices(), t.Edges()
	if g.vertices > mostVertices {
		return fmt.Errorf("a graph of %d vertices: a GPU samples of at most %d", g.vertices, mostVertices)
	}
	weighted := false
	for v := range g.vertices {
		if !t.Near(uint32(v)) {
			return errPartial
		}
		_, weights := t.Row(v)
		weighted = weighted || weights != nil
	}
	staging, err := on.AllocPinned(stagedBytes)
	if err != nil {
		return err
	}
	err = g.sendRows(on, staging, t, weighted && form.Weighting != sample.Ones)
	if err == nil {
		err = g.sendForm(on, staging, t, form)
	}
	return errors.Join(err, on.FreePinned(staging))
}

func (g *resident) sendRows(on *driver.Thread, staging driver.Pinned, t *sample.Topology, weighted bool) error {
	bounds, err := begin[int64](on, &g.indptr, staging, int64(g.vertices)+1)
	if err != nil {
		return err
	}
	at := int64(0)
	err = bounds.one(at)
	for v := 0; v < g.vertices && err == nil; v++ {
		at += int64(t.Degree(v))
		err = bounds.one(at)
	}
	if err := errors.Join(err, bounds.flush()); err != nil {
		return err
	}
	sources, err := begin[int32](on, &g.indices, staging, g.edges)
	for v := 0; v < g.vertices && err == nil; v++ {
		row, _ := t.Row(v)
		err = sources.all(row)
	}
	if err := errors.Join(err, sources.flush()); err != nil || !weighted {
		return err
	}
	values, err := begin[float32](on, &g.weights, staging, g.edges)
	for v := 0; v < g.vertices && err == nil; v++ {
		row, weights := t.Row(v)
		err = values.all(weights)
		for i := 0; weights == nil && i < len(row) && err == nil; i++ {
			err = values.one(1)
		}
	}
	return errors.Join(err, values.flush())
}

func (g *resident) sendForm(on *driver.Thread, staging driver.Pinned, t *sample.Topology, form sample.Form) error {
	if form.SelfLoops {
		if err := send(on, &g.loops, staging, t.SelfLoops()); err != nil {
			return err
		}
	}
	if form.Weighting == sample.Symmetric {
		return send(on, &g.inverse, staging, t.Inverse(form.SelfLoops))
	}
	return nil
}

// send allocates memory for numbers and fills it.
func send[T int32 | int64 | uint64 | float32](on *driver.Thread, to *driver.Memory, staging driver.Pinned, numbers []T) error {
	s, err := begin[T](on, to, staging, int64(len(numbers)))
	if err != nil {
		return err
	}
	if err := s.all(numbers); err != nil {
		return err
	}
	return s.flush()
}

func (g *resident) memories() []*driver.Memory {
	return []*driver.Memory{&g.indptr, &g.indices, &g.weights, &g.loops, &g.inverse}
}

// sending fills memory of the GPU from its beginning, through staging.
type sending[T int32 | int64 | uint64 | float32] struct {
	on      *driver.Thread
	to      driver.Memory
	staging driver.Pinned
	numbers []T // the staging memory
	size    int // bytes of a number
	sent    int // bytes sent
	held    int // numbers in staging
}

// begin allocates memory for n numbers and a little more, so that it is never empty.
func begin[T int32 | int64 | uint64 | float32](on *driver.Thread, to *driver.Memory, staging driver.Pinned, n int64) (*sending[T], error) {
	numbers := driver.Numbers[T](staging)
	s := &sending[T]{on: on, staging: staging, numbers: numbers, size: staging.Len() / len(numbers)}
	m, err := on.Alloc((int(n) + 1) * s.size)
	if err != nil {
		return s, fmt.Errorf("%w: %w", errRoom, err)
	}
	*to, s.to = m, m
	return s, nil
}

func (s *sending[T]) one(x T) error {
	if s.held == len(s.numbers) {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.numbers[s.held] = x
	s.held++
	return nil
}

func (s *sending[T]) all(numbers []T) error {
	for len(numbers) > 0 {
		n := copy(s.numbers[s.held:], numbers)
		s.held += n
		numbers = numbers[n:]
		if s.held == len(s.numbers) {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sending[T]) flush() error {
	n := s.held * s.size
	if n == 0 {
		return nil
	}
	err := s.on.SendNow(s.to.Slice(s.sent, s.sent+n), s.staging.Slice(0, n))
	s.sent, s.held = s.sent+n, 0
	return err
}
