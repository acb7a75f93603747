// Package read opens graphs as people have them: NumPy archives, the raw files of
// Planetoid and of the Open Graph Benchmark, delimited text, Parquet and Arrow. It
// finds out which of them is there; each format is read by a package below, which
// makes it a graph.Source that streams what is large. What formats share is in
// package source.
//
// All formats are treated alike. Nothing in a file is trusted: the sizes it claims are
// compared with how large it is before memory is taken, and of Python's pickles only
// data is read. Nothing is converted silently: what can be taken in two ways is noted,
// what can't be taken is refused in a sentence that says where it stands and what to
// do. The packages do not mirror or merge edges, and write nothing.
package read

import (
	"context"
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/columnar"
	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/npz"
	"github.com/hopmesh/hopmesh/engine/graph/read/ogb"
	"github.com/hopmesh/hopmesh/engine/graph/read/planetoid"
	"github.com/hopmesh/hopmesh/engine/graph/read/remote"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/tabular"
	"github.com/hopmesh/hopmesh/engine/graph/read/triples"
	"github.com/hopmesh/hopmesh/engine/graph/read/typed"
	"github.com/hopmesh/hopmesh/engine/graph/read/web"
)

// Options say how a source is read.
type Options = source.Options

// openers open each format.
var openers = map[string]func(ctx context.Context, path string, o Options) (graph.Source, error){
	"npz":          npz.Open,
	"planetoid":    planetoid.Open,
	"ogb":          ogb.Open,
	"csv":          typed.OpenCSV,
	"parquet":      typed.OpenParquet,
	typed.Format:   typed.Open,
	triples.Format: triples.Open,
}

// Open opens the graph at a path, which is a file or a folder, or how the names of
// Planetoid's files begin, or at an address of http, https, s3 or gs. Who opened it closes
// it; ctx must last until then.
func Open(ctx context.Context, path string, o Options) (graph.Source, error) {
	if o.Note != nil {
		ctx = web.WithNote(ctx, o.Note)
	}
	format := o.Format
	if format != "" && format != "auto" && openers[format] == nil {
		return nil, fmt.Errorf("the format %q is not known: give auto, npz, planetoid, ogb, csv, parquet, typed or triples", format)
	}
	prefix := !web.Is(path) && planetoid.IsPrefix(path)
	if !prefix {
		if err := files.Check(ctx, path); err != nil {
			return nil, err
		}
	}
	if format == "" || format == "auto" {
		if prefix {
			format = "planetoid"
		} else {
			var err error
			if format, err = detect(ctx, path); err != nil {
				return nil, err
			}
		}
	}
	if o.Admit != nil {
		if err := o.Admit(format); err != nil {
			return nil, err
		}
	}
	if err := learns(format, o); err != nil {
		return nil, err
	}
	if err := describesEdges(format, o.EdgeFeatures); err != nil {
		return nil, err
	}
	if err := categorizes(format, o); err != nil {
		return nil, err
	}
	if format == "csv" || format == "parquet" {
		return openTables(ctx, path, format, o)
	}
	return openers[format](ctx, path, o)
}

// categorizes returns an error if a format has no columns of types and relations by these names.
func categorizes(format string, o Options) error {
	name, key := o.Categories()
	switch {
	case name == "":
		return nil
	case format != "csv" && format != "parquet":
		return fmt.Errorf("%s names a column of tables (csv, parquet), and a source of the format %s has none with names: leave it out", key, format)
	case len(o.EdgeFeatures) > 0:
		return fmt.Errorf("%s makes a graph with types, whose edges have no features yet: leave {dataset.edge_features} out", key)
	}
	return nil
}

// describesEdges returns an error if a format has no features of edges by these names.
func describesEdges(format string, asked []string) error {
	switch {
	case len(asked) == 0 || format == "csv" || format == "parquet":
		return nil
	case format != "npz" && format != "ogb":
		return fmt.Errorf("no features of edges are read of the format %s: leave {dataset.edge_features} out, or save the graph as tables or npz", format)
	case !source.AllEdgeFeatures(asked):
		return fmt.Errorf("{dataset.edge_features} names columns of tables (csv, parquet), and a source of the format %s has none with names: give all", format)
	}
	return nil
}

// learns returns an error if a format has no targets of the task that is asked for.
func learns(format string, o Options) error {
	targets, _, err := o.Asked()
	table := format == "csv" || format == "parquet"
	switch {
	case err != nil || table:
		return err
	case len(o.LabelColumns) > 0:
		return fmt.Errorf("{dataset.label_columns} names columns of tables (csv, parquet), and a source of the format %s has none with names: leave it out", format)
	case targets == graph.OneClass || format == "npz" || format == typed.Format:
		return nil
	}
	return fmt.Errorf("labels of the format %s are read as one class for each vertex: leave {dataset.task} %s out, or save the graph as tables or npz with a column for each target", format, o.Task)
}

// A Part is one of several sources of a graph. Ask is nil for one on this machine.
type Part struct {
	Label string // for sentences, as the user wrote it
	Node  string // parts of different nodes are read at the same time
	Path  string
	Ask   remote.Ask
}

// OpenParts opens several sources as one graph: tables of one kind follow one another in
// the order of the parts. Who opened it closes it.
func OpenParts(ctx context.Context, parts []Part, o Options) (graph.Source, error) {
	if len(parts) == 1 && parts[0].Ask == nil {
		return Open(ctx, parts[0].Path, o)
	}
	if o.Note != nil {
		ctx = web.WithNote(ctx, o.Note)
	}
	if _, key := o.Categories(); key != "" {
		return nil, fmt.Errorf("%s makes a graph with types, which is imported alone, on the node where it is: give that node's address, and this one source", key)
	}
	list := make([]tabular.Part, len(parts))
	format := ""
	for i, p := range parts {
		p.Label = files.Show(p.Label)
		list[i] = tabular.Part{Label: p.Label, Node: p.Node, Path: p.Path}
		var own string
		var err error
		if p.Ask == nil {
			own, err = partFormat(ctx, p.Path, o.Format)
		} else {
			list[i].Far = p.Ask
			list[i].Look, err = p.Ask.Look(ctx, p.Path, o.Format, o.LabelColumns)
			own = list[i].Look.Format
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Label, err)
		}
		if i > 0 && own != format {
			return nil, fmt.Errorf("%s has the format %s and %s has %s: give sources of one format", files.Show(parts[0].Label), format, p.Label, own)
		}
		format = own
	}
	if err := learns(format, o); err != nil {
		return nil, err
	}
	for _, p := range parts {
		if p.Ask != nil && len(o.EdgeFeatures) > 0 {
			return nil, fmt.Errorf("features of edges are read on this machine only, and %s is on another: copy it here, or leave {dataset.edge_features} out", files.Show(p.Label))
		}
	}
	return tabular.OpenParts(ctx, list, format, o)
}

// NewServer returns what reads parts for other nodes, within a share of memory; 0: no bound.
func NewServer(memory uint64) *remote.Server {
	return remote.NewServer(memory, func(path, format string) (string, error) {
		return partFormat(context.Background(), path, format) // paths of this machine only
	})
}

// partFormat returns the format of one of several sources, which must be tables.
func partFormat(ctx context.Context, path, format string) (string, error) {
	if !web.Is(path) && planetoid.IsPrefix(path) {
		return "", fmt.Errorf("a source of the format planetoid is imported alone, on the node where it is: give that node's address, and this one source")
	}
	if err := files.Check(ctx, path); err != nil {
		return "", err
	}
	if format == "" || format == "auto" {
		var err error
		if format, err = detect(ctx, path); err != nil {
			return "", err
		}
	}
	if format != "csv" && format != "parquet" {
		return "", fmt.Errorf("a source of the format %.20q is imported alone, on the node where it is: give that node's address, and this one source", format)
	}
	return format, nil
}

// detect finds the format by the names of what is there.
func detect(ctx context.Context, path string) (string, error) {
	shown := files.Show(path)
	what, err := files.Look(ctx, path)
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", shown, err)
	}
	if what != files.Folder {
		name := strings.ToLower(files.Base(path))
		switch {
		case npz.IsPickle(name):
			return "", npz.Pickled(files.Base(path))
		case strings.HasSuffix(name, ".npz"):
			return "npz", nil
		case ogb.IsArchive(name):
			return "ogb", nil
		case planetoid.IsFile(files.Base(path)), web.Is(path) && planetoid.IsName(files.Base(path)):
			return "planetoid", nil
		case endsIn(name, tabular.CSVFiles):
			return "csv", nil
		case endsIn(name, tabular.ParquetFiles):
			return "parquet", nil
		}
		return "", fmt.Errorf("%s does not say by its name what it is (.npz, .zip, ind.NAME.x, .csv, .tsv, .txt with or without .gz, .parquet, .arrow or .feather): rename it, or give the format", files.Base(path))
	}
	all, err := files.List(ctx, path)
	if err != nil {
		return "", fmt.Errorf("list %s: %w", shown, err)
	}
	if typed.IsFolder(ctx, path, all) {
		return typed.Format, nil
	}
	found, parts := "", false
	var archives, pickles []string
	for _, entry := range all {
		name := strings.ToLower(entry)
		format := ""
		switch stem, ending, _ := strings.Cut(name, "."); {
		case name == "raw" || name == "split":
			format = "ogb"
		case planetoid.IsFile(entry):
			format = "planetoid"
		case tabular.IsEdges(stem) && endsIn("."+ending, tabular.CSVFiles):
			format = "csv"
		case tabular.IsEdges(stem) && endsIn("."+ending, tabular.ParquetFiles):
			format = "parquet"
		case strings.HasSuffix(name, ".npz"):
			archives = append(archives, entry)
		case npz.IsPickle(name):
			pickles = append(pickles, entry)
		case columnar.IsPart(name):
			parts = true
		}
		if format == "ogb" && !web.Is(path) && !ogb.IsFolder(path) {
			format = ""
		}
		if format != "" && found != "" && format != found {
			return "", fmt.Errorf("%s holds files of the formats %s and %s: give the format that is meant", shown, found, format)
		}
		if format != "" {
			found = format
		}
	}
	switch {
	case found != "":
		return found, nil
	case triples.IsFolder(all):
		return triples.Format, nil
	case parts:
		return "parquet", nil
	case len(archives) > 0:
		return "", fmt.Errorf("%s is a folder with %s in it: give the path of that file", shown, archives[0])
	case len(pickles) > 0:
		return "", npz.Pickled(pickles[0])
	}
	return "", fmt.Errorf("%s holds no graph that is known by its files' names (ind.NAME.x and its like of Planetoid, raw/ and split/ of OGB, edges.csv or edges.parquet, train.txt and test.txt of triples, or part files of Parquet): check the path, or rename the file with the edges", shown)
}

func endsIn(name string, endings []string) bool {
	for _, e := range endings {
		if strings.HasSuffix(name, e) && len(name) >= len(e) {
			return true
		}
	}
	return false
}
