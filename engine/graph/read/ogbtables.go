package read

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// The raw tables that are read; all others are noted.
const (
	ogbEdges    = "edge.csv.gz"
	ogbFeatures = "node-feat.csv.gz"
	ogbLabels   = "node-label.csv.gz"
	ogbVertices = "num-node-list.csv.gz"
	ogbCount    = "num-edge-list.csv.gz"
)

// tables opens packed tables of text without headers.
func (g *ogb) tables(ctx context.Context) error {
	vertices, err := g.number(ctx, ogbVertices)
	if err != nil {
		return err
	}
	size, unused, err := g.list()
	if err != nil {
		return err
	}
	const free, perByte = 1 << 20, 1024
	if vertices == 0 || vertices > free+perByte*size || vertices > graph.MaxVertices {
		return fmt.Errorf("%s: it says that there are %d vertices, and raw/ has %d bytes: copy the folder again", ogbVertices, vertices, size)
	}
	g.meta.Vertices = uint32(vertices)
	if g.meta.Edges, err = g.number(ctx, ogbCount); err != nil {
		return err
	}
	g.assembled.edges = g.readEdges
	if exists(g.raw(ogbFeatures)) {
		if err := g.width(ctx); err != nil {
			return err
		}
		g.assembled.features = g.readFeatures
	}
	if len(unused) > 0 {
		g.notes = append(g.notes, fmt.Sprintf("Not used of raw/: %s.", listed(unused)))
	}
	if !exists(g.raw(ogbLabels)) {
		return nil
	}
	return g.readLabels(ctx)
}

// list returns how large the raw files are, and which are not used.
func (g *ogb) list() (size uint64, unused []string, err error) {
	entries, err := os.ReadDir(g.raw(""))
	if err != nil {
		return 0, nil, fmt.Errorf("list the raw files: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return 0, nil, fmt.Errorf("list the raw files: %w", err)
		}
		size += uint64(info.Size())
		if !slices.Contains([]string{ogbEdges, ogbFeatures, ogbLabels, ogbVertices, ogbCount}, e.Name()) && strings.HasSuffix(e.Name(), ".csv.gz") {
			unused = append(unused, e.Name())
		}
	}
	return size, unused, nil
}

// number reads a table of one number; more lines would be more graphs.
func (g *ogb) number(ctx context.Context, name string) (uint64, error) {
	var number uint64
	found := 0
	err := g.lines(ctx, g.raw(name), name, maxLine, func(line uint64, text []byte) error {
		v, ok := parseID(trim(text))
		if found++; !ok || v < 0 {
			return fmt.Errorf("%s, line %d: %s is no number: copy the folder again", name, line, shorten(text))
		}
		if found > 1 {
			return fmt.Errorf("%s, line %d: there are several graphs, and a dataset is one: import one of them", name, line)
		}
		number = uint64(v)
		return nil
	})
	if err == nil && found == 0 {
		err = fmt.Errorf("%s is empty: copy the folder again", name)
	}
	return number, err
}

func (g *ogb) readEdges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	b := graph.EdgeBatch{Src: make([]uint32, 0, edgeBatch), Dst: make([]uint32, 0, edgeBatch)}
	read := uint64(0)
	flush := func() error {
		read += uint64(len(b.Src))
		if read > g.meta.Edges {
			return fmt.Errorf("%s has more than the %d edges that %s says: copy the folder again", ogbEdges, g.meta.Edges, ogbCount)
		}
		err := yield(b)
		b.Src, b.Dst = b.Src[:0], b.Dst[:0]
		return err
	}
	err := g.lines(ctx, g.raw(ogbEdges), ogbEdges, maxLine, func(line uint64, text []byte) error {
		src, i := plainInteger(text, 0)
		if i >= len(text) || text[i] != ',' {
			return fmt.Errorf("%s, line %d: %s is not two vertices with a comma between them: copy the folder again", ogbEdges, line, shorten(text))
		}
		dst, i := plainInteger(append(text, '\n'), i+1)
		if i != len(text) {
			return fmt.Errorf("%s, line %d: %s is not two vertices with a comma between them: copy the folder again", ogbEdges, line, shorten(text))
		}
		for _, v := range [2]int64{src, dst} {
			if uint64(v) >= uint64(g.meta.Vertices) {
				return fmt.Errorf("%s, line %d: there is no vertex %d, as there are %d, numbered from 0: copy the folder again", ogbEdges, line, v, g.meta.Vertices)
			}
		}
		if b.Src, b.Dst = append(b.Src, uint32(src)), append(b.Dst, uint32(dst)); len(b.Src) == edgeBatch {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(b.Src) > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	if read != g.meta.Edges {
		return fmt.Errorf("%s has %d edges and %s says %d: copy the folder again", ogbEdges, read, ogbCount, g.meta.Edges)
	}
	return nil
}

var errEnough = errors.New("what was looked for is found")

// width counts the columns of the first line of features.
func (g *ogb) width(ctx context.Context) error {
	err := g.lines(ctx, g.raw(ogbFeatures), ogbFeatures, maxFeaturesLine, func(_ uint64, text []byte) error {
		g.meta.Features = bytes.Count(text, []byte{','}) + 1
		return errEnough
	})
	switch {
	case err == nil:
		return fmt.Errorf("%s is empty: copy the folder again", ogbFeatures)
	case !errors.Is(err, errEnough):
		return err
	case g.meta.Features > maxDenseFeatures:
		return fmt.Errorf("%s has %d columns, and at most %d can be taken: make the features fewer", ogbFeatures, g.meta.Features, maxDenseFeatures)
	}
	return nil
}

func (g *ogb) readFeatures(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	var b graph.FeatureBatch
	rows, width := uint32(0), g.meta.Features
	err := g.lines(ctx, g.raw(ogbFeatures), ogbFeatures, maxFeaturesLine, func(line uint64, text []byte) error {
		if rows == g.meta.Vertices {
			return fmt.Errorf("%s, line %d: there are %d vertices only: copy the folder again", ogbFeatures, line, rows)
		}
		rows++
		was := len(b.Dense)
		for more := true; more; {
			field, rest, found := bytes.Cut(text, []byte{','})
			text, more = rest, found
			v, err := quickFloat(trim(field))
			if err != nil {
				return fmt.Errorf("%s, line %d: %w", ogbFeatures, line, explainNumber(fmt.Sprintf("feature in column %d", len(b.Dense)-was+1), field, err))
			}
			b.Dense = append(b.Dense, v)
		}
		if len(b.Dense)-was != width {
			return fmt.Errorf("%s, line %d: there are %d features, and the first line has %d: copy the folder again", ogbFeatures, line, len(b.Dense)-was, width)
		}
		if len(b.Dense) < featureBatch {
			return nil
		}
		err := yield(b)
		b.First, b.Dense = rows, b.Dense[:0]
		return err
	})
	if err != nil {
		return err
	}
	if rows != g.meta.Vertices {
		return fmt.Errorf("%s has %d rows and there are %d vertices: copy the folder again", ogbFeatures, rows, g.meta.Vertices)
	}
	if len(b.Dense) > 0 {
		return yield(b)
	}
	return nil
}

func (g *ogb) readLabels(ctx context.Context) error {
	err := g.lines(ctx, g.raw(ogbLabels), ogbLabels, maxLine, func(line uint64, text []byte) error {
		if n := bytes.Count(text, []byte{','}) + 1; n > 1 {
			return fmt.Errorf("%s, line %d: there are labels for %d tasks, and a vertex has one: leave one column", ogbLabels, line, n)
		}
		label, err := parseLabel(trim(text))
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", ogbLabels, line, err)
		}
		if g.labels, err = enlarge(g.memory, g.labels, 1, 4); err != nil {
			return err
		}
		g.labels = append(g.labels, label)
		g.meta.Classes = max(g.meta.Classes, int(label)+1)
		return nil
	})
	if err == nil && len(g.labels) != int(g.meta.Vertices) {
		err = fmt.Errorf("%s has %d rows and there are %d vertices: copy the folder again", ogbLabels, len(g.labels), g.meta.Vertices)
	}
	return err
}
