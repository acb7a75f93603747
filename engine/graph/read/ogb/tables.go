package ogb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// The raw tables that are read. Others are mentioned in a note.
const (
	ogbEdges    = "edge.csv.gz"
	ogbFeatures = "node-feat.csv.gz"
	ogbLabels   = "node-label.csv.gz"
	ogbVertices = "num-node-list.csv.gz"
	ogbCount    = "num-edge-list.csv.gz"
	ogbAlong    = "edge-feat.csv.gz" // read where features of edges are asked for
)

// tables opens packed tables of text without headers.
func (g *ogb) tables(ctx context.Context) error {
	vertices, err := g.number(ctx, ogbVertices)
	if err != nil {
		return err
	}
	size, unused, err := g.list(ctx)
	if err != nil {
		return err
	}
	if err := enough(ogbVertices, vertices, size); err != nil {
		return err
	}
	g.Info.Vertices, g.targets = uint32(vertices), uint32(vertices)
	if g.Info.Edges, err = g.number(ctx, ogbCount); err != nil {
		return err
	}
	g.ReadEdges = g.readEdges
	if len(g.o.EdgeFeatures) > 0 {
		if g.Info.EdgeFeatures, err = g.width(ctx, ogbAlong, graph.MaxEdgeFeatures); err != nil {
			return err
		}
	}
	if g.has(ogbFeatures) {
		if g.Info.Features, err = g.width(ctx, ogbFeatures, source.MaxDenseFeatures); err != nil {
			return err
		}
		g.ReadFeatures = g.readFeatures
	}
	if len(unused) > 0 {
		g.Remarks = append(g.Remarks, fmt.Sprintf("Not used of raw/: %s.", source.Listed(unused)))
	}
	if !g.has(ogbLabels) {
		return nil
	}
	return g.readLabels(ctx)
}

// list returns how large the raw files are, and which are not used.
func (g *ogb) list(ctx context.Context) (size uint64, unused []string, err error) {
	for _, name := range g.there {
		if slices.Contains([]string{ogbEdges, ogbFeatures, ogbLabels, ogbVertices, ogbCount}, name) || name == ogbAlong && len(g.o.EdgeFeatures) > 0 {
			n, err := g.tree.size(ctx, "raw/"+name)
			if err != nil {
				return 0, nil, fmt.Errorf("look at raw/%s: %w", name, err)
			}
			size += uint64(n)
		} else if strings.HasSuffix(name, ".csv.gz") {
			unused = append(unused, name)
		}
	}
	return size, unused, nil
}

// number reads a table of one number. More lines would mean more graphs.
func (g *ogb) number(ctx context.Context, name string) (uint64, error) {
	var number uint64
	found := 0
	name = g.in[name] + name
	err := g.lines(ctx, "raw/"+name, name, source.MaxLine, func(line uint64, text []byte) error {
		v, ok := source.ParseID(source.Trim(text))
		if found++; !ok || v < 0 {
			return fmt.Errorf("%s, line %d: %s is not a number: copy the folder again", name, line, source.Shorten(text))
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

// edgesAtOnce returns how many edges are yielded together.
func (g *ogb) edgesAtOnce() int {
	return max(1, min(source.EdgeBatch, source.FeatureBatch/max(1, g.Info.EdgeFeatures)))
}

func (g *ogb) readEdges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	b := graph.EdgeBatch{Src: make([]uint32, 0, source.EdgeBatch), Dst: make([]uint32, 0, source.EdgeBatch)}
	read, name := uint64(0), g.in[ogbEdges]+ogbEdges
	most := g.edgesAtOnce()
	described, done := g.described(ctx)
	defer done()
	flush := func() (err error) {
		if b.Rows, err = described(b.Rows[:0], len(b.Src)); err != nil {
			return err
		}
		read += uint64(len(b.Src))
		if read > g.Info.Edges {
			return fmt.Errorf("%s has more than the %d edges that %s says: copy the folder again", name, g.Info.Edges, g.in[ogbCount]+ogbCount)
		}
		err = yield(b)
		b.Src, b.Dst = b.Src[:0], b.Dst[:0]
		return err
	}
	err := g.lines(ctx, "raw/"+name, name, source.MaxLine, func(line uint64, text []byte) error {
		src, i := source.PlainInteger(text, 0)
		if i >= len(text) || text[i] != ',' {
			return fmt.Errorf("%s, line %d: %s is not two vertices with a comma between them: copy the folder again", name, line, source.Shorten(text))
		}
		dst, i := source.PlainInteger(append(text, '\n'), i+1)
		if i != len(text) {
			return fmt.Errorf("%s, line %d: %s is not two vertices with a comma between them: copy the folder again", name, line, source.Shorten(text))
		}
		for i, v := range [2]int64{src, dst} {
			if n := [2]uint32{g.Info.Vertices, g.targets}[i]; uint64(v) >= uint64(n) {
				return fmt.Errorf("%s, line %d: there is not a vertex %d, as there are %d, numbered from 0: copy the folder again", name, line, v, n)
			}
		}
		if b.Src, b.Dst = append(b.Src, uint32(src)), append(b.Dst, uint32(dst)); len(b.Src) == most {
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
	if _, err := described(nil, 1); g.Info.EdgeFeatures > 0 && !errors.Is(err, errFewer) {
		return cmp.Or(err, fmt.Errorf("%s has more rows than %s has edges: copy the folder again", ogbAlong, ogbEdges))
	}
	if read != g.Info.Edges {
		return fmt.Errorf("%s has %d edges and %s says %d: copy the folder again", name, read, g.in[ogbCount]+ogbCount, g.Info.Edges)
	}
	return nil
}

// described returns what appends the features of the next edges, which a file has in the order of
// the edges, and ends the reading of it.
func (g *ogb) described(ctx context.Context) (next func(to []float32, edges int) ([]float32, error), done func()) {
	if g.Info.EdgeFeatures == 0 {
		return func([]float32, int) ([]float32, error) { return nil, nil }, func() {}
	}
	type row struct {
		line uint64
		text []byte
	}
	pull, done := iter.Pull2(func(yield func(row, error) bool) {
		err := g.lines(ctx, "raw/"+ogbAlong, ogbAlong, source.MaxFeaturesLine, func(line uint64, text []byte) error {
			if !yield(row{line, text}, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(row{}, err)
		}
	})
	return func(to []float32, edges int) ([]float32, error) {
		for range edges {
			r, err, ok := pull()
			if !ok {
				err = errFewer
			}
			if err == nil {
				to, err = appendRow(to, ogbAlong, r.line, r.text, g.Info.EdgeFeatures)
			}
			if err != nil {
				return to, err
			}
		}
		return to, nil
	}, done
}

var (
	errEnough = errors.New("what was looked for is found")
	errFewer  = errors.New(ogbAlong + " has fewer rows than " + ogbEdges + " has edges: copy the folder again")
)

// width counts the features in the first line of a table.
func (g *ogb) width(ctx context.Context, table string, most int) (columns int, err error) {
	name := g.in[table] + table
	err = g.lines(ctx, "raw/"+name, name, source.MaxFeaturesLine, func(_ uint64, text []byte) error {
		columns = bytes.Count(text, []byte{','}) + 1
		return errEnough
	})
	switch {
	case err == nil:
		return 0, fmt.Errorf("%s is empty: copy the folder again", name)
	case !errors.Is(err, errEnough):
		return 0, err
	case columns > most:
		return 0, fmt.Errorf("%s has %d columns, and at most %d can be taken: make the features fewer", name, columns, most)
	}
	return columns, nil
}

// appendRow appends the features in a line.
func appendRow(to []float32, name string, line uint64, text []byte, columns int) ([]float32, error) {
	was := len(to)
	for more := true; more; {
		field, rest, found := bytes.Cut(text, []byte{','})
		text, more = rest, found
		v, err := quickFloat(source.Trim(field))
		if err != nil {
			return to, fmt.Errorf("%s, line %d: %w", name, line, source.ExplainNumber(fmt.Sprintf("feature in column %d", len(to)-was+1), field, err))
		}
		to = append(to, v)
	}
	if n := len(to) - was; n != columns {
		return to, fmt.Errorf("%s, line %d: there are %d features, and the first line has %d: copy the folder again", name, line, n, columns)
	}
	return to, nil
}

func (g *ogb) readFeatures(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	var b graph.FeatureBatch
	rows, width, name := uint32(0), g.Info.Features, g.in[ogbFeatures]+ogbFeatures
	err := g.lines(ctx, "raw/"+name, name, source.MaxFeaturesLine, func(line uint64, text []byte) error {
		if rows == g.Info.Vertices {
			return fmt.Errorf("%s, line %d: there are %d vertices only: copy the folder again", name, line, rows)
		}
		rows++
		var err error
		if b.Dense, err = appendRow(b.Dense, name, line, text, width); err != nil || len(b.Dense) < source.FeatureBatch {
			return err
		}
		err = yield(b)
		b.First, b.Dense = rows, b.Dense[:0]
		return err
	})
	if err != nil {
		return err
	}
	if rows != g.Info.Vertices {
		return fmt.Errorf("%s has %d rows and there are %d vertices: copy the folder again", name, rows, g.Info.Vertices)
	}
	if len(b.Dense) > 0 {
		return yield(b)
	}
	return nil
}

func (g *ogb) readLabels(ctx context.Context) error {
	name := g.in[ogbLabels] + ogbLabels
	err := g.lines(ctx, "raw/"+name, name, source.MaxLine, func(line uint64, text []byte) error {
		if len(g.Classes) == int(g.Info.Vertices) {
			return fmt.Errorf("%s, line %d: there are %d vertices only: copy the folder again", name, line, g.Info.Vertices)
		}
		if n := bytes.Count(text, []byte{','}) + 1; n > 1 {
			return fmt.Errorf("%s, line %d: there are labels for %d tasks, and a vertex has one: leave one column", name, line, n)
		}
		label, err := source.ParseLabel(source.Trim(text))
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", name, line, err)
		}
		if g.Classes, err = source.Enlarge(g.memory, g.Classes, 1, 4); err != nil {
			return err
		}
		g.Classes = append(g.Classes, label)
		g.Info.Classes = max(g.Info.Classes, int(label)+1)
		return nil
	})
	if err == nil && len(g.Classes) != int(g.Info.Vertices) {
		err = fmt.Errorf("%s has %d rows and there are %d vertices: copy the folder again", name, len(g.Classes), g.Info.Vertices)
	}
	return err
}

// quickFloat reads a finite number as source.ParseFloat does, but parses short ones
// itself: as long as digits fit in 53 bits and the power of ten is exact, one
// division or multiplication rounds as it should, and rounding that again to 32
// bits is what NumPy does with what it reads.
func quickFloat(b []byte) (float32, error) {
	const most = 1 << 53 / 10
	var digits uint64
	power, i, seen := 0, 0, false
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		i++
	}
	for point := false; i < len(b); i++ {
		c := b[i] - '0'
		switch {
		case c <= 9 && digits < most:
			digits = digits*10 + uint64(c)
			seen = true
			if point {
				power--
			}
		case b[i] == '.' && !point:
			point = true
		case (b[i] == 'e' || b[i] == 'E') && seen:
			e, ok := smallExponent(b[i+1:])
			if !ok {
				return source.ParseFloat(b)
			}
			power += e
			i = len(b)
		default:
			return source.ParseFloat(b)
		}
	}
	if !seen || power < -22 || power > 22 {
		return source.ParseFloat(b)
	}
	v := float64(digits)
	if power < 0 {
		v /= powersOfTen[-power]
	} else {
		v *= powersOfTen[power]
	}
	if negative {
		v = -v
	}
	return float32(v), nil
}

// smallExponent reads one or two digits with or without a sign.
func smallExponent(b []byte) (int, bool) {
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 2 {
		return 0, false
	}
	e := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		e = e*10 + int(c-'0')
	}
	if negative {
		e = -e
	}
	return e, true
}

var powersOfTen = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}
