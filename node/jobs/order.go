package jobs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// order is the order in which vertices are written: by their names in the source. It takes
// little memory, however many they are: runs of them are sorted each by itself, and merged
// while they are read.
type order struct {
	shards []*graph.Shard
	first  []int // of each shard's vertices
	total  int
	names  bool     // vertices have names, and not numbers
	list   []uint32 // of one run
	file   *os.File // of several runs, one after the other; nil: there is one
}

var (
	// runVertices is how many vertices a run has, but for the last. Tests lower it.
	runVertices = 1 << 18
	// atOnce is how many rows are written together, and how many vertices of a run are read.
	atOnce = 1024
)

// sorted returns the order of all vertices. What is too much for memory lies in a folder.
func sorted(shards []*graph.Shard, folder string) (*order, error) {
	o := &order{shards: shards}
	for i, s := range shards {
		o.names = s.Originals.Offsets != nil
		if o.names != (shards[0].Originals.Offsets != nil) {
			return nil, fmt.Errorf("shard %d calls its vertices by numbers or names, and shard 0 otherwise: import the dataset again", i)
		}
		o.first = append(o.first, o.total)
		o.total += s.Vertices
	}
	if err := o.sort(folder); err != nil {
		return nil, errors.Join(fmt.Errorf("sort the vertices by their names: %w", err), o.close())
	}
	return o, nil
}

// sort sorts all runs.
func (o *order) sort(folder string) (err error) {
	if o.total > runVertices {
		if o.file, err = unnamed(folder); err != nil {
			return err
		}
	}
	var numbers []int64 // of a run's vertices
	for from := 0; from < o.total; from += runVertices {
		n := min(runVertices, o.total-from)
		o.list, numbers = o.list[:0], numbers[:0]
		for v := from; v < from+n; v++ {
			o.list = append(o.list, uint32(v))
			if !o.names {
				numbers = append(numbers, o.number(uint32(v)))
			}
		}
		if o.names {
			slices.SortFunc(o.list, func(a, b uint32) int { return bytes.Compare(o.name(a), o.name(b)) })
		} else {
			slices.SortFunc(o.list, func(a, b uint32) int { return cmp.Compare(numbers[int(a)-from], numbers[int(b)-from]) })
		}
		if o.file == nil {
			return nil
		}
		if _, err := o.file.WriteAt(bytesOf(o.list), 4*int64(from)); err != nil {
			return fmt.Errorf("%w: free some space in the data directory", err)
		}
	}
	o.list = nil
	return nil
}

// unnamed makes a file that is gone when it is closed or the process ends.
func unnamed(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, "predict-*.tmp")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (o *order) close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}

// of finds a vertex in its shard.
func (o *order) of(v uint32) (s *graph.Shard, row int) {
	i, found := slices.BinarySearch(o.first, int(v))
	if !found {
		i--
	}
	for o.shards[i].Vertices == 0 || int(v) >= o.first[i]+o.shards[i].Vertices {
		i++ // behind shards without a vertex
	}
	return o.shards[i], int(v) - o.first[i]
}

// name returns the source's name of a vertex, if it has names.
func (o *order) name(v uint32) []byte {
	s, row := o.of(v)
	n := s.Originals
	return n.Bytes[n.Offsets[row]:n.Offsets[row+1]]
}

// id appends what the source calls a vertex.
func (o *order) id(to []byte, v uint32) []byte {
	s, row := o.of(v)
	return s.Originals.Append(to, row)
}

// number returns the source's number of a vertex, if it has numbers.
func (o *order) number(v uint32) int64 {
	s, row := o.of(v)
	return s.Originals.Ints[row]
}

// each calls do with all vertices in their order, some at a time.
func (o *order) each(do func(vertices []uint32) error) error {
	if o.file == nil {
		for some := range slices.Chunk(o.list, atOnce) {
			if err := do(some); err != nil {
				return err
			}
		}
		return nil
	}
	m, err := newMerge(o)
	if err != nil {
		return err
	}
	some := make([]uint32, 0, atOnce)
	for len(m.runs) > 0 {
		some = append(some, m.runs[0].vertices[0])
		if err := m.pop(); err != nil {
			return err
		}
		if len(some) == atOnce || len(m.runs) == 0 {
			if err := do(some); err != nil {
				return err
			}
			some = some[:0]
		}
	}
	return nil
}

// merge is a heap of runs that have more vertices, by the next one's name.
type merge struct {
	order *order
	runs  []*readRun
}

// A readRun is a run that is read.
type readRun struct {
	vertices []uint32 // the next ones; not empty
	memory   []uint32
	at, end  int // in the file, of those behind
	number   int64
	name     []byte
}

func newMerge(o *order) (*merge, error) {
	m := &merge{order: o}
	for from := 0; from < o.total; from += runVertices {
		r := &readRun{at: from, end: min(from+runVertices, o.total), memory: make([]uint32, atOnce)}
		if err := m.next(r); err != nil {
			return nil, err
		}
		m.runs = append(m.runs, r)
	}
	for at := len(m.runs)/2 - 1; at >= 0; at-- {
		m.sink(at)
	}
	return m, nil
}

// next reads what a run needs to be compared.
func (m *merge) next(r *readRun) error {
	if len(r.vertices) == 0 && r.at < r.end {
		r.vertices = r.memory[:min(len(r.memory), r.end-r.at)]
		if _, err := m.order.file.ReadAt(bytesOf(r.vertices), 4*int64(r.at)); err != nil {
			return fmt.Errorf("read back the order of vertices: %w", err)
		}
		r.at += len(r.vertices)
	}
	switch {
	case len(r.vertices) == 0:
	case m.order.names:
		r.name = m.order.name(r.vertices[0])
	default:
		r.number = m.order.number(r.vertices[0])
	}
	return nil
}

// pop removes the first vertex.
func (m *merge) pop() error {
	r := m.runs[0]
	r.vertices = r.vertices[1:]
	if err := m.next(r); err != nil {
		return err
	}
	if len(r.vertices) == 0 {
		last := len(m.runs) - 1
		m.runs[0] = m.runs[last]
		m.runs = m.runs[:last]
	}
	m.sink(0)
	return nil
}

// sink moves a run down to its place.
func (m *merge) sink(at int) {
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(m.runs); child++ {
			if m.runs[child].before(m.runs[least]) {
				least = child
			}
		}
		if least == at {
			return
		}
		m.runs[at], m.runs[least] = m.runs[least], m.runs[at]
		at = least
	}
}

// before reports whether the next vertex of a run is before another's.
func (r *readRun) before(other *readRun) bool {
	if r.name != nil || other.name != nil {
		return bytes.Compare(r.name, other.name) < 0
	}
	return r.number < other.number
}

// bytesOf returns the bytes of some numbers without copying them.
func bytesOf[E uint32 | float32](x []E) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}
