package jobs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/table"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Prediction configures Predict.
type Prediction struct {
	Model      string // the file of the model
	Shards     []*graph.Shard
	Folder     string // for a temporary file
	Memory     uint64 // bytes that may be used; 0: no bound
	Device     Device // used as long as it does not fail
	Format     string // one of table.Formats
	Embeddings bool
	Index      int // of the model in a sweep; trained.BestModel: the best
}

// CheckModel returns an error unless a model can be read completely.
func CheckModel(path string) error { return trained.Export(io.Discard, path, trained.BestModel) }

// Predict writes one row of numbers for each vertex, in ascending order of the vertices'
// names in the source: numeric names by value, others alphabetically. If the source
// numbers its vertices from 0, the rows are in the source's order.
func Predict(ctx context.Context, p Prediction, to io.Writer) (err error) {
	rows, err := sorted(p.Shards)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(p.Folder, "predict-*.tmp")
	if err != nil {
		return fmt.Errorf("make room for predictions: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := os.Remove(file.Name()); err != nil { // the open file disappears with the process
		return fmt.Errorf("make room for predictions: %w", err)
	}
	var columns int
	err = predict(ctx, p,
		func(a trained.Prediction) error {
			columns = a.Columns
			return nil
		},
		func(first int, values []float32) error { return rows.put(file, first, values, columns) })
	if err != nil {
		return err
	}
	return rows.write(to, file, columns, p)
}

// order is the order in which vertices are written.
type order struct {
	shards []*graph.Shard
	first  []int    // of each shard's vertices
	place  []uint32 // by vertex: its place in the file
	vertex []uint32 // by place
}

// sorted returns the order of all vertices.
func sorted(shards []*graph.Shard) (*order, error) {
	o := &order{shards: shards}
	n := 0
	for i, s := range shards {
		if (s.Originals.Offsets != nil) != (shards[0].Originals.Offsets != nil) {
			return nil, fmt.Errorf("shard %d calls its vertices by numbers or names, and shard 0 otherwise: import the dataset again", i)
		}
		o.first = append(o.first, n)
		n += s.Vertices
	}
	o.vertex, o.place = make([]uint32, n), make([]uint32, n)
	for v := range o.vertex {
		o.vertex[v] = uint32(v)
	}
	if n > 0 && shards[0].Originals.Offsets == nil {
		numbers := make([]int64, 0, n)
		for _, s := range shards {
			numbers = append(numbers, s.Originals.Ints...)
		}
		slices.SortFunc(o.vertex, func(a, b uint32) int { return cmp.Compare(numbers[a], numbers[b]) })
	} else {
		slices.SortFunc(o.vertex, func(a, b uint32) int { return bytes.Compare(o.name(a), o.name(b)) })
	}
	for at, v := range o.vertex {
		o.place[v] = uint32(at)
	}
	return o, nil
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

// put writes the rows of vertices from first on to their places in the file. Rows that
// are adjacent in the file are written together.
func (o *order) put(file io.WriterAt, first int, values []float32, columns int) error {
	n := len(values) / columns
	for i := 0; i < n; {
		k := i + 1
		for k < n && o.place[first+k] == o.place[first+k-1]+1 {
			k++
		}
		if _, err := file.WriteAt(bytesOf(values[i*columns:k*columns]), int64(o.place[first+i])*int64(columns)*4); err != nil {
			return fmt.Errorf("keep predictions until all are there: %w: free some space in the data directory", err)
		}
		i = k
	}
	return nil
}

// atOnce is how many rows are written together.
const atOnce = 1024

func (o *order) write(to io.Writer, file io.ReaderAt, columns int, p Prediction) error {
	what := "class"
	if p.Embeddings {
		what = "embedding"
	}
	h := table.Header{Rows: len(o.vertex), Names: len(o.shards) > 0 && o.shards[0].Originals.Offsets != nil}
	for c := range columns {
		h.Columns = append(h.Columns, fmt.Sprintf("%s_%d", what, c))
	}
	out, err := table.New(to, strings.ToLower(p.Format), h)
	if err != nil {
		return err
	}
	values, ids := make([]float32, atOnce*columns), make([][]byte, atOnce)
	for at := 0; at < len(o.vertex); at += atOnce {
		n := min(atOnce, len(o.vertex)-at)
		some := values[:n*columns]
		if _, err := file.ReadAt(bytesOf(some), int64(at)*int64(columns)*4); err != nil {
			return fmt.Errorf("read predictions back: %w", err)
		}
		for i := range n {
			s, row := o.of(o.vertex[at+i])
			ids[i] = s.Originals.Append(ids[i][:0], row)
		}
		if err := out.Write(ids[:n], some); err != nil {
			return err
		}
	}
	return out.Close()
}

// bytesOf returns the bytes of some numbers without copying them.
func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}
