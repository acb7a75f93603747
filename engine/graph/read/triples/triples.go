// Package triples reads knowledge graphs as benchmarks have them: a folder with train.txt,
// valid.txt and test.txt, each line of which is a head, a relation and a tail with tabs between
// them. The edges have relations and a given split; see graph.Types.
//
// Such graphs have no features. Each vertex gets a column of its own, so that the first product of
// a model is a table of learnt embeddings.
package triples

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// Format is how the format is called.
const Format = "triples"

// entity is the name of the one type of vertices.
const entity = "entity"

// parts are the names of the files of each part, without their endings.
var parts = [...][]string{graph.Train: {"train"}, graph.Validation: {"valid", "val", "dev"}, graph.Test: {"test"}}

// endings are those of the files. A file that is packed has .gz behind it.
var endings = []string{".txt", ".tsv"}

// partOf returns the part of the split that a file of this name holds.
func partOf(name string) (part graph.Mark, ok bool) {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	for _, ending := range endings {
		stem, is := strings.CutSuffix(name, ending)
		if !is {
			continue
		}
		for part, names := range parts {
			if slices.Contains(names, stem) {
				return graph.Mark(part), true
			}
		}
	}
	return 0, false
}

// IsFolder reports whether a folder that holds these has the files of triples: of training, and of
// another part.
func IsFolder(names []string) bool {
	var has [len(parts)]bool
	for _, name := range names {
		if part, ok := partOf(name); ok {
			has[part] = true
		}
	}
	return has[graph.Train] && (has[graph.Validation] || has[graph.Test])
}

// A triple is one line. Its relation is numbered in the order of lines while files are read, and
// then in that of names.
type triple struct{ head, relation, tail uint32 }

// tripleBytes is what a triple takes, while a part grows.
const tripleBytes = 12

// reader is a folder that is being read.
type reader struct {
	folder    string
	memory    source.Memory
	of        [len(parts)][]triple
	entities  names
	relations names
	notes     []string
}

// names numbers texts in the order in which they come.
type names struct {
	at  map[string]uint32
	all graph.Strings
}

// entryBytes is about what an entry of the map takes beside its text.
const entryBytes = 64

// number returns the number of a name, which is new or has come before.
func (n *names) number(m *source.Memory, name []byte) (uint32, error) {
	if v, known := n.at[string(name)]; known {
		return v, nil
	}
	if err := m.Grow(0, entryBytes+2*uint64(len(name))); err != nil {
		return 0, err
	}
	if n.at == nil {
		n.at, n.all.Offsets = map[string]uint32{}, []int64{0}
	}
	v := uint32(len(n.at))
	n.at[string(name)] = v
	n.all.Bytes = append(n.all.Bytes, name...)
	n.all.Offsets = append(n.all.Offsets, int64(len(n.all.Bytes)))
	return v, nil
}

func (n *names) count() int { return len(n.at) }

// name returns a name by its number.
func (n *names) name(i int) string {
	return string(n.all.Bytes[n.all.Offsets[i]:n.all.Offsets[i+1]])
}

// Open opens a folder.
func Open(ctx context.Context, path string, o source.Options) (graph.Source, error) {
	r := &reader{folder: path, memory: source.Memory{Limit: o.Memory}}
	g, err := r.open(ctx, o)
	if errors.Is(err, source.ErrMemory) {
		return nil, fmt.Errorf("the triples and names of %s do not fit in %s of memory: raise {dataset.memory}", files.Show(path), source.Size(o.Memory))
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (r *reader) open(ctx context.Context, o source.Options) (*Graph, error) {
	all, err := files.List(ctx, r.folder)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", files.Show(r.folder), err)
	}
	if !IsFolder(all) {
		return nil, fmt.Errorf("%s does not hold train.txt and valid.txt or test.txt, as a folder of triples does: rename the files so", files.Show(r.folder))
	}
	var read [len(parts)]string
	for _, name := range all {
		part, ok := partOf(name)
		if !ok {
			continue
		}
		if read[part] != "" {
			return nil, fmt.Errorf("%s holds %s and %s, which are the same part of the split: leave one of them", files.Show(r.folder), read[part], name)
		}
		read[part] = name
	}
	for part, name := range read {
		if name == "" {
			continue
		}
		if err := r.file(ctx, name, graph.Mark(part), o); err != nil {
			return nil, err
		}
	}
	if note := source.NotReadOf(files.Base(r.folder), all, func(name string) bool { _, ok := partOf(name); return ok }); note != "" {
		r.notes = append(r.notes, note)
	}
	return r.graph()
}

// file reads the triples of a part.
func (r *reader) file(ctx context.Context, name string, part graph.Mark, o source.Options) error {
	f, err := files.Open(ctx, files.Join(r.folder, name))
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	progress := source.NewProgress(o.Report, "reading "+name, uint64(f.Size()), "bytes")
	lines := source.NewLines(ctx, name, &sequence{of: f}, source.MaxLine, progress.At)
	defer lines.Close()
	return r.lines(ctx, lines, part)
}

// lines reads the triples of lines.
func (r *reader) lines(ctx context.Context, lines *source.Lines, part graph.Mark) error {
	return source.EachLine(ctx, lines, func(line uint64, text []byte) error {
		fields, err := split(text)
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", lines.Name, line, err)
		}
		if line == 1 && isHead(fields) {
			r.notes = append(r.notes, fmt.Sprintf("The first line of %s names columns: it is no triple.", lines.Name))
			return nil
		}
		var t triple
		for i, to := range []*uint32{&t.head, &t.relation, &t.tail} {
			of, what := &r.entities, "entities"
			if i == 1 {
				of, what = &r.relations, "relations"
				if err := graph.CheckTypeName(string(fields[i])); err != nil {
					return fmt.Errorf("%s, line %d: %w", lines.Name, line, err)
				}
			}
			if *to, err = of.number(&r.memory, fields[i]); err != nil {
				return err
			}
			if most := [2]int{graph.MaxVertices, mostRelations}[i%2]; of.count() > most {
				return fmt.Errorf("%s, line %d: there are more than %d %s up to here: leave some out, or check that columns are head, relation and tail", lines.Name, line, most, what)
			}
		}
		if r.of[part], err = source.Enlarge(&r.memory, r.of[part], 1, tripleBytes); err != nil {
			return err
		}
		r.of[part] = append(r.of[part], t)
		return nil
	})
}

// columns are the usual names of the three columns.
var columns = [3][]string{{"head", "subject", "source", "h", "s"}, {"relation", "predicate", "r", "p"}, {"tail", "object", "target", "t", "o"}}

// isHead reports whether the fields of a line are names of columns.
func isHead(fields [3][]byte) bool {
	for i, f := range fields {
		if !slices.Contains(columns[i], strings.ToLower(string(f))) {
			return false
		}
	}
	return true
}

// mostRelations is how many relations a graph of triples may have.
const mostRelations = graph.MaxRelations / 4

// split returns the three fields of a line.
func split(text []byte) (fields [3][]byte, err error) {
	rest, more := text, true
	for i := range fields {
		if !more {
			return fields, fmt.Errorf("there is no head, relation and tail, but %d columns: put tabs between them", i)
		}
		fields[i], rest, more = bytes.Cut(rest, []byte{'\t'})
		switch fields[i] = source.Trim(fields[i]); {
		case len(fields[i]) == 0:
			return fields, fmt.Errorf("column %d is empty: give a head, a relation and a tail", i+1)
		case !utf8.Valid(fields[i]):
			return fields, fmt.Errorf("column %d is no text in UTF-8: save the file as such", i+1)
		}
	}
	if more {
		return fields, errors.New("there are more than the three columns head, relation and tail: leave the others out")
	}
	return fields, nil
}

// sequence reads a file from its beginning.
type sequence struct {
	of files.File
	at int64
}

// Read implements io.Reader.
func (s *sequence) Read(b []byte) (int, error) {
	n, err := s.of.ReadAt(b, s.at)
	s.at += int64(n)
	return n, err
}
