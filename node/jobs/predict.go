package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/recipe"
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
	// Intact returns an error if the shards have been damaged meanwhile; nil: they are trusted.
	Intact func(ctx context.Context) error
}

// CheckModel returns an error unless a model can be read completely.
func CheckModel(path string) (err error) {
	defer mapped.End(mapped.Guard())
	defer mapped.CaughtAny(&err)
	return trained.Export(io.Discard, path, trained.BestModel)
}

// Assemble writes the model of a job that has ended before it was done from parts of it.
func Assemble(to string, parts []string) (err error) {
	defer mapped.End(mapped.Guard())
	defer mapped.CaughtAny(&err)
	return trained.Assemble(to, parts)
}

// Predict writes one row of numbers for each vertex, in ascending order of the vertices'
// names in the source: numeric names by value, others alphabetically. If the source
// numbers its vertices from 0, the rows are in the source's order. Rows wait in a file, so
// that memory does not depend on how many there are.
func Predict(ctx context.Context, p Prediction, to io.Writer) (err error) {
	defer mapped.End(mapped.Guard())
	defer mapped.CaughtAny(&err)
	o, err := sorted(p.Shards, p.Folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	file, err := unnamed(p.Folder)
	if err != nil {
		return fmt.Errorf("make room for predictions: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var about trained.Prediction
	err = predict(ctx, p, trained.PredictOptions{Writing: p.writing},
		func(a trained.Prediction) error {
			about = a
			return room(p.Folder, uint64(a.Vertices)*uint64(a.Columns)*4)
		},
		func(first int, values []float32) error {
			if _, err := file.WriteAt(bytesOf(values), int64(first)*int64(about.Columns)*4); err != nil {
				return fmt.Errorf("keep predictions until all are there: %w: free some space in the data directory", err)
			}
			return nil
		})
	if err == nil && p.Intact != nil {
		err = p.Intact(ctx)
	}
	if err != nil {
		return err
	}
	return o.write(ctx, to, file, about, p)
}

// room returns an error if a folder has less room than that.
func room(folder string, bytes uint64) error {
	if free, _, err := budget.Disk(folder); err == nil && bytes > free {
		return fmt.Errorf("the predictions need %s on the disk of %s until all are there, which has %s free: free some space in the data directory, or ask another node", budget.Format(bytes), folder, budget.Format(free))
	}
	return nil
}

func (p *Prediction) format() string { return strings.ToLower(p.Format) }

// header describes the table of a prediction.
func (p *Prediction) header(of trained.Prediction) table.Header {
	h := table.Header{Rows: of.Vertices, Names: len(p.Shards) > 0 && p.Shards[0].Originals.Offsets != nil}
	what := of.Task.Column
	if p.Embeddings {
		what = "embedding"
	} else if of.Task.Exclusive {
		h.Answers = &table.Answers{Names: of.Classes, Logistic: of.Loss == recipe.BCE}
	}
	named := !p.Embeddings && !of.Task.Exclusive && distinct(of.Classes)
	for c := range of.Columns {
		name := strconv.Itoa(c)
		if named && c < len(of.Classes) {
			name = of.Classes[c] // its number, if it has no other
		}
		h.Columns = append(h.Columns, what+"_"+name)
	}
	return h
}

// distinct reports whether names can be those of columns.
func distinct(names []string) bool {
	sorted := slices.Sorted(slices.Values(names))
	return len(slices.Compact(sorted)) == len(names)
}

// writing returns what it takes of memory to write a prediction in its order.
func (p *Prediction) writing(of trained.Prediction) uint64 {
	ordering := 4*atOnce*(of.Columns+of.Vertices/runVertices) + 8*runVertices
	return uint64(ordering) + table.Memory(p.format(), p.header(of))
}

// write writes the rows of the file in order.
func (o *order) write(ctx context.Context, to io.Writer, file *os.File, of trained.Prediction, p Prediction) error {
	h, columns := p.header(of), of.Columns
	out, err := table.New(to, p.format(), h)
	if err != nil {
		return err
	}
	values, ids := make([]float32, atOnce*columns), make([][]byte, atOnce)
	err = o.each(func(vertices []uint32) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := read(file, values, vertices, columns); err != nil {
			return err
		}
		for i, v := range vertices {
			s, row := o.of(v)
			ids[i] = s.Originals.Append(ids[i][:0], row)
		}
		return out.Write(ids[:len(vertices)], values[:len(vertices)*columns])
	})
	if err != nil {
		return err
	}
	return out.Close()
}

// read reads the rows of some vertices. Those that follow each other are read together.
func read(file io.ReaderAt, to []float32, vertices []uint32, columns int) error {
	for len(vertices) > 0 {
		n := 1
		for n < len(vertices) && vertices[n] == vertices[n-1]+1 {
			n++
		}
		if _, err := file.ReadAt(bytesOf(to[:n*columns]), int64(vertices[0])*int64(columns)*4); err != nil {
			return fmt.Errorf("read predictions back: %w", err)
		}
		to, vertices = to[n*columns:], vertices[n:]
	}
	return nil
}
