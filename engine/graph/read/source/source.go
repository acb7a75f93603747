// Package source has what the readers of all formats share: options, a source made
// of parts, bounded memory, progress, lines of text, the values in them, and splits.
//
// It knows no format.
package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Options say how a source is read.
type Options struct {
	Format string // auto (or empty), npz, planetoid, ogb, csv, parquet, typed or triples
	// Task is what is learnt of vertices: class, multilabel or regression; empty: whatever the
	// labels look like.
	Task string
	// LabelColumns are the names of the columns of tables that hold labels; none: those that
	// are called so.
	LabelColumns []string
	// EdgeFeatures are the names of the columns of tables that hold features of edges, or all for
	// all that there are; none: they are left out.
	EdgeFeatures []string
	// TypeColumn and RelationColumn are the names of the columns of tables that say the type of a
	// vertex and the relation of an edge; NoColumn for none, "" for those that are called so.
	TypeColumn, RelationColumn string
	// Beside are the names of files of a folder that are read by another reader: no note names them.
	Beside []string
	// Memory bounds what the source holds, in bytes; 0: no bound.
	Memory uint64
	// Admit returns an error if a graph of a format may not be opened: it is asked once the format is
	// known, before anything is read. It may be nil.
	Admit func(format string) error
	// Report receives the progress of passes that are made while opening; it may be nil.
	Report func(graph.Progress)
	// Note receives what the user should know while the source is read; it may be nil.
	Note func(string)
}

// NoColumn says that no column is meant.
const NoColumn = "none"

// WithoutTypes are the options that have tables read without types.
const WithoutTypes = "{dataset.type_column none} and {dataset.relation_column none}"

// Categories returns the name of a column of types or relations that is asked for, and the key of
// the option that asks; "" if none is.
func (o *Options) Categories() (name, key string) {
	switch {
	case o.TypeColumn != "" && o.TypeColumn != NoColumn:
		return o.TypeColumn, "{dataset.type_column}"
	case o.RelationColumn != "" && o.RelationColumn != NoColumn:
		return o.RelationColumn, "{dataset.relation_column}"
	}
	return "", ""
}

// AllEdgeFeatures reports whether all features of edges are asked for.
func AllEdgeFeatures(asked []string) bool { return len(asked) == 1 && asked[0] == "all" }

// Regular returns an error if path is missing or neither a file nor a folder: a pipe
// or a device could hold the reader forever.
func Regular(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file or folder %s on this machine: check the path", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be read by the daemon: give the user that it runs as the right to read it", path)
	case err != nil:
		return fmt.Errorf("look at %s: %w", path, err)
	case !info.IsDir() && !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a folder: copy what it holds to a file first", path)
	}
	return nil
}

// NotRead names what lies in a folder and is not read, in a note; "" if that is nothing.
// Hidden files, and markers such as _SUCCESS, are not named.
func NotRead(folder string, read func(name string) bool) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "" // it was read before
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return NotReadOf(filepath.Base(folder), names, read)
}

// NotReadOf is NotRead for a folder that holds these.
func NotReadOf(folder string, names []string, read func(name string) bool) string {
	var rest []string
	for _, name := range names {
		if !read(name) && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "_") {
			rest = append(rest, name)
		}
	}
	if len(rest) == 0 {
		return ""
	}
	return fmt.Sprintf("Not read of %s: %s.", folder, Listed(rest))
}

// Assembled is a source made of parts, each of which knows how to read itself.
type Assembled struct {
	Info         graph.Meta
	ReadEdges    func(ctx context.Context, yield func(graph.EdgeBatch) error) error
	ReadFeatures func(ctx context.Context, yield func(graph.FeatureBatch) error) error // nil: none
	Classes      []int32                                                               // of the vertices; nil: no labels
	Columns      graph.Columns                                                         // of targets
	Marks        [][]graph.Mark
	Remarks      []string
	Closer       func() error // may be nil
}

var _ graph.Source = (*Assembled)(nil)

func (s *Assembled) Meta() graph.Meta       { return s.Info }
func (s *Assembled) Labels() []int32        { return s.Classes }
func (s *Assembled) Targets() graph.Columns { return s.Columns }
func (s *Assembled) Splits() [][]graph.Mark { return s.Marks }
func (s *Assembled) IDs() graph.IDs         { return graph.IDs{} }
func (s *Assembled) Notes() []string        { return s.Remarks }

func (s *Assembled) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	return s.ReadEdges(ctx, yield)
}

func (s *Assembled) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	if s.ReadFeatures == nil {
		return nil
	}
	return s.ReadFeatures(ctx, yield)
}

func (s *Assembled) Close() error {
	if s.Closer == nil {
		return nil
	}
	return s.Closer()
}

// EdgeBatch is how many edges are yielded at a time, FeatureBatch how many values
// at least, if there are as many.
const (
	EdgeBatch    = 1 << 16
	FeatureBatch = 1 << 19
)

// Bounds of the columns that features may have: a row of a dense batch lies in
// memory, and models have a weight for each column.
const (
	MaxDenseFeatures  = 1 << 20
	MaxSparseFeatures = 1 << 24
)

// Memory counts what a source holds against what it may. Limit 0: no bound.
type Memory struct {
	Limit uint64
	held  uint64
}

// ErrMemory is what Grow and Enlarge return where the limit is reached.
var ErrMemory = errors.New("more memory is needed than is allowed")

// Grow replaces from bytes by to bytes, which lie side by side while one is copied
// into the other.
func (m *Memory) Grow(from, to uint64) error {
	if m.Limit > 0 && m.held+to > m.Limit {
		return ErrMemory
	}
	m.held += to - from
	return nil
}

// Free gives bytes back.
func (m *Memory) Free(bytes uint64) { m.held -= bytes }

// Held returns how many bytes are counted.
func (m *Memory) Held() uint64 { return m.held }

// Enlarge returns s with room for more elements of the given size, counting the
// memory before it is taken.
func Enlarge[E any](m *Memory, s []E, more int, size uint64) ([]E, error) {
	if len(s)+more <= cap(s) {
		return s, nil
	}
	room := max(len(s)+more, cap(s)+cap(s)/2, 1024)
	if err := m.Grow(uint64(cap(s))*size, uint64(room)*size); err != nil {
		return nil, err
	}
	out := make([]E, len(s), room)
	copy(out, s)
	return out, nil
}

// RoomFor returns n elements, in the memory of s if that is enough. What they hold
// is left open.
func RoomFor[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Progress reports how far a pass has come, ten times a second at most.
type Progress struct {
	report   func(graph.Progress)
	progress graph.Progress
	last     time.Time
}

// NewProgress begins a pass over total units; 0: not known. report may be nil.
func NewProgress(report func(graph.Progress), stage string, total uint64, unit string) *Progress {
	return &Progress{report: report, progress: graph.Progress{Stage: stage, Total: total, Unit: unit}}
}

// At reports that so many units are done.
func (p *Progress) At(done uint64) {
	if p.report == nil {
		return
	}
	if now := time.Now(); now.Sub(p.last) >= 100*time.Millisecond || done == p.progress.Total {
		p.last = now
		p.progress.Done = done
		if p.progress.Total > 0 {
			p.progress.Total = max(p.progress.Total, done) // the file may grow meanwhile
		}
		p.report(p.progress)
	}
}

// PartNames are the parts of a split as files call them, by their mark.
var PartNames = [...]string{graph.Unmarked: "none", graph.Train: "train", graph.Validation: "val", graph.Test: "test"}

// Marking collects the marks of splits.
type Marking struct {
	Vertices uint32
	Memory   *Memory
	Splits   [][]graph.Mark
}

// Room takes the memory of so many splits.
func (m *Marking) Room(splits uint64) error {
	if err := m.Memory.Grow(0, splits*uint64(m.Vertices)); err != nil {
		return err
	}
	m.Splits = make([][]graph.Mark, splits)
	for i := range m.Splits {
		m.Splits[i] = make([]graph.Mark, m.Vertices)
	}
	return nil
}

// Mark puts a vertex in a part. To be in it twice is no harm.
func (m *Marking) Mark(split, vertex uint64, part graph.Mark) error {
	at := &m.Splits[split][vertex]
	if *at != graph.Unmarked && *at != part {
		of := ""
		if len(m.Splits) > 1 {
			of = fmt.Sprintf(" of split %d", split)
		}
		return fmt.Errorf("vertex %d is in %s and in %s%s: take it out of one", vertex, PartNames[*at], PartNames[part], of)
	}
	*at = part
	return nil
}

// Size formats a number of bytes.
func Size(n uint64) string {
	const step = 1 << 10
	if n < step {
		return fmt.Sprintf("%d bytes", n)
	}
	v, unit := float64(n)/step, 0
	for ; v >= step && unit < 3; unit++ {
		v /= step
	}
	return fmt.Sprintf("%.1f %s", v, [...]string{"KiB", "MiB", "GiB", "TiB"}[unit])
}
