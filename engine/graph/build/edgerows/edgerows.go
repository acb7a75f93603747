// Package edgerows keeps the features of edges on disk while an import cuts a graph, and brings
// them into the order of its shards.
//
// An import sorts edges with one number each, which is their weight. Edges with features have
// their place in the source there instead, and their features wait in a file in the order of the
// source: they are written once and read once, however often edges are sorted. Price: each row is
// read by itself.
package edgerows

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// MaxEdges bounds the edges of a source: the bits of their numbers travel as finite numbers.
const MaxEdges = 0x7f800000

// Rows is a source whose edges have features, which are in a file without a name once its edges
// have been read: its weights are the bits of their places. Methods other than those of a source
// work with nil, of edges without features.
type Rows struct {
	graph.Source
	meta     graph.Meta
	folder   string
	failed   func(error) error // the error of a write
	weighted bool
	columns  int
	file     *os.File
}

// Wrap returns the source itself if its edges have no features, else one with a file in a folder.
func Wrap(src graph.Source, folder string, failed func(error) error) (graph.Source, error) {
	meta := src.Meta()
	if meta.EdgeFeatures == 0 {
		return src, nil
	}
	r := &Rows{Source: src, meta: meta, folder: folder, failed: failed, weighted: meta.Weighted, columns: meta.EdgeFeatures}
	if meta.Edges > MaxEdges {
		return src, fmt.Errorf("the graph has %d edges, and with features of edges at most %d can be taken: leave the features of edges out", meta.Edges, MaxEdges)
	}
	var err error
	if r.file, err = unnamed(folder); err != nil {
		return src, err
	}
	r.meta.Weighted = true
	return r, nil
}

// Of returns what Wrap has made of a source, or nil.
func Of(src graph.Source) *Rows {
	r, _ := src.(*Rows)
	return r
}

// Meta is the source's, with numbers that are sorted with edges for weights.
func (r *Rows) Meta() graph.Meta { return r.meta }

func unnamed(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, ".edges-*")
	if err != nil {
		return nil, fmt.Errorf("make a scratch file in %s: %w", folder, err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("unlink a scratch file in %s: %w", folder, err), file.Close())
	}
	return file, nil
}

// Discard frees the disk space.
func (r *Rows) Discard() {
	if r != nil {
		_ = r.file.Close() // its bytes are no longer needed
	}
}

// Weighted reports whether the source has weights. Edges without features are sorted with numbers
// only if these are weights, so that sorted says it; r may be nil then.
func (r *Rows) Weighted(sorted bool) bool {
	if r == nil {
		return sorted
	}
	return r.weighted
}

// Weights returns the weights of merged edges, or nothing if the source has none.
func (r *Rows) Weights(merged []float32) []float32 {
	if r.Weighted(true) {
		return merged
	}
	return nil
}

// width is how many numbers are kept of an edge: its weight comes first.
func (r *Rows) width() int {
	if r.weighted {
		return r.columns + 1
	}
	return r.columns
}

// Bytes returns what the file takes for so many edges.
func Bytes(meta graph.Meta) uint64 {
	if meta.EdgeFeatures == 0 {
		return 0
	}
	return (&Rows{weighted: meta.Weighted, columns: meta.EdgeFeatures}).rowBytes() * meta.Edges
}

func (r *Rows) rowBytes() uint64 { return 4 * uint64(r.width()) }

// Edges reads the source, puts its rows into the file, and yields its edges with the bits of their
// places in place of weights.
func (r *Rows) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("write a scratch file in %s: %w", r.folder, err)
	}
	to := bufio.NewWriterSize(r.file, 1<<18)
	count := uint64(0)
	var numbers []float32
	err := r.Source.Edges(ctx, func(b graph.EdgeBatch) error {
		n := len(b.Src)
		if len(b.Rows) != n*r.columns || r.weighted && len(b.Weights) != n {
			return fmt.Errorf("the source yields %d edges, %d weights and %d features of edges at once", n, len(b.Weights), len(b.Rows))
		}
		if count+uint64(n) > MaxEdges {
			return fmt.Errorf("the source has more than %d edges, the most that can have features", MaxEdges)
		}
		numbers = numbers[:0]
		for i := range n {
			row := b.Rows[i*r.columns:][:r.columns]
			if err := finite(row); err != nil {
				return fmt.Errorf("the edge from vertex %d to %d has the feature %w, which is no finite number: give each edge finite features", b.Src[i], b.Dst[i], err)
			}
			if r.weighted {
				if err := finite(b.Weights[i : i+1]); err != nil {
					return fmt.Errorf("the edge from vertex %d to %d has the weight %w, which is no number to sum", b.Src[i], b.Dst[i], err)
				}
				_, _ = to.Write(raw(b.Weights[i : i+1])) // the last write returns the error
			}
			if _, err := to.Write(raw(row)); err != nil {
				return r.failed(err)
			}
			numbers = append(numbers, math.Float32frombits(uint32(count)))
			count++
		}
		b.Weights, b.Rows = numbers, nil
		return yield(b)
	})
	if err != nil {
		return err
	}
	if err := to.Flush(); err != nil {
		return r.failed(err)
	}
	return nil
}

// A strange is a number that is not finite.
type strange float32

func (s strange) Error() string { return fmt.Sprint(float32(s)) }

func finite(row []float32) error {
	for _, x := range row {
		if x-x != 0 {
			return strange(x)
		}
	}
	return nil
}

func raw[T float32 | uint16](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// A Merger puts the rows of one shard after another into the order of its edges. Edges that are
// merged have the mean of their features, in float64 and in the order of the source. It is not
// safe for concurrent use; several may share Rows. Begin, End and Close do nothing with nil.
type Merger struct {
	rows  *Rows
	dtype graph.DType
	file  *os.File // rows of the shard
	to    *bufio.Writer
	err   error // the first one

	row   []float32 // as it was read
	sum   []float64
	mean  []float32
	half  []uint16
	count int // edges that are merged into the row under way
}

// Merger returns one that writes rows of a type.
func (r *Rows) Merger(dtype graph.DType) (*Merger, error) {
	if r == nil {
		return nil, nil
	}
	file, err := unnamed(r.folder)
	if err != nil {
		return nil, err
	}
	return &Merger{
		rows: r, dtype: dtype, file: file, to: bufio.NewWriterSize(nil, 1<<17),
		row: make([]float32, r.width()), sum: make([]float64, r.columns), mean: make([]float32, r.columns), half: make([]uint16, r.columns),
	}, nil
}

// Close frees the disk space.
func (m *Merger) Close() {
	if m != nil {
		_ = m.file.Close()
	}
}

// Begin begins a shard.
func (m *Merger) Begin() {
	if m == nil {
		return
	}
	if _, err := m.file.Seek(0, io.SeekStart); err != nil {
		m.fail(err)
	}
	m.to.Reset(m.file)
	m.count = 0
}

func (m *Merger) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// Take takes the next edge, by the bits of its number, and returns its weight. same says that it
// is merged with the one before.
func (m *Merger) Take(number float32, same bool) (weight float32) {
	at := int64(math.Float32bits(number)) * int64(m.rows.rowBytes())
	if _, err := m.rows.file.ReadAt(raw(m.row), at); err != nil {
		m.fail(fmt.Errorf("read a scratch file in %s again: %w", m.rows.folder, err))
		return 0
	}
	if !same {
		m.put()
		clear(m.sum)
	}
	m.count++
	row := m.row
	if m.rows.weighted {
		weight, row = row[0], row[1:]
	}
	for i, x := range row {
		m.sum[i] += float64(x)
	}
	return weight
}

// put writes the row under way.
func (m *Merger) put() {
	if m.count == 0 {
		return
	}
	for i, x := range m.sum {
		m.mean[i] = float32(x / float64(m.count))
	}
	m.count = 0
	b := raw(m.mean)
	if m.dtype == graph.BF16 {
		graph.ToBF16(m.half, m.mean)
		for i, bits := range m.half {
			if bits&0x7f80 == 0x7f80 { // sources yield finite values
				m.fail(fmt.Errorf("a feature of an edge, %g, is beyond what bf16 holds: store the features as f32", m.mean[i]))
			}
		}
		b = raw(m.half)
	}
	if _, err := m.to.Write(b); err != nil {
		m.fail(m.rows.failed(err))
	}
}

// End ends a shard, and returns the first error of any.
func (m *Merger) End() error {
	if m == nil {
		return nil
	}
	m.put()
	if err := m.to.Flush(); err != nil {
		m.fail(m.rows.failed(err))
	}
	return m.err
}

// Write gives the rows of the shard to out, through a buffer.
func (m *Merger) Write(edges uint64, buf []byte, out func([]byte) error) error {
	size := int64(edges) * int64(m.dtype.EdgeRowBytes(m.rows.columns))
	for at := int64(0); at < size; {
		b := buf[:min(int64(len(buf)), size-at)]
		if _, err := m.file.ReadAt(b, at); err != nil {
			return fmt.Errorf("read a scratch file in %s again: %w", m.rows.folder, err)
		}
		if err := out(b); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return nil
}
