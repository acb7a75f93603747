package read

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// planetoidFiles are how the names of Planetoid's files end. x and tx, y and ty are
// features and labels of what is trained on and tested; allx and ally, of all but
// the test; x is the beginning of allx and not needed.
var planetoidFiles = []string{".test.index", ".allx", ".ally", ".graph", ".tx", ".ty", ".x", ".y"}

// planetoidName takes NAME out of ind.NAME.x and its like.
func planetoidName(file string) string {
	rest, ok := strings.CutPrefix(file, "ind.")
	if !ok {
		return ""
	}
	for _, ending := range planetoidFiles {
		if name, ok := strings.CutSuffix(rest, ending); ok {
			return name
		}
	}
	return ""
}

func isPlanetoid(file string) bool { return planetoidName(file) != "" }

// openPlanetoid reads the raw files of kimiyoung/planetoid, and assembles them as
// tkipf/gcn and PyG do. The path is their folder, one of them, or how all their
// names begin.
func openPlanetoid(ctx context.Context, path string, o Options) (graph.Source, error) {
	prefix, err := planetoidPrefix(path)
	if err != nil {
		return nil, err
	}
	p := &planetoid{prefix: prefix, memory: &memory{limit: o.Memory}}
	p.meta.Format = "planetoid"
	for _, part := range []func(context.Context) error{p.readTest, p.readFeatures, p.readLabels, p.readGraph} {
		if err := part(ctx); err != nil {
			if errors.Is(err, errMemory) {
				return nil, fmt.Errorf("%s: %w: raise --memory", filepath.Base(prefix), err)
			}
			return nil, err
		}
	}
	return &p.assembled, nil
}

func planetoidPrefix(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil { // then it is how the names begin
		return path, nil //nolint:nilerr // the files' own errors say more
	}
	if !info.IsDir() {
		if name := planetoidName(filepath.Base(path)); name != "" {
			return filepath.Join(filepath.Dir(path), "ind."+name), nil
		}
		return "", fmt.Errorf("%s is none of Planetoid's files: give one called ind.NAME.x, or their folder", filepath.Base(path))
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", fmt.Errorf("list the folder: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name := planetoidName(e.Name()); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return "", fmt.Errorf("%s holds none of Planetoid's files, ind.NAME.x, ind.NAME.graph and their like: check the path", path)
	case 1:
		return filepath.Join(path, "ind."+names[0]), nil
	}
	return "", fmt.Errorf("%s holds the graphs %s: give the path of one, such as %s", path, listed(names), filepath.Join(path, "ind."+names[0]))
}

// planetoid is a graph that is being assembled. The first vertices are the rows of
// allx; those of tx come behind, in the order of test.index.
type planetoid struct {
	assembled
	prefix string
	memory *memory
	test   []uint32
	before uint32 // rows of allx
}

func (p *planetoid) name(ending string) string { return filepath.Base(p.prefix) + ending }

func (p *planetoid) wrong(ending, format string, args ...any) error {
	return fmt.Errorf("%s: %w", p.name(ending), fmt.Errorf(format, args...))
}

// load reads one of the pickles. It takes some times the file's size of memory,
// least for arrays. It returns that size too.
func (p *planetoid) load(ctx context.Context, ending string, times uint64) (v any, size int64, err error) {
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	if _, err := regular(p.prefix + ending); err != nil {
		return nil, 0, err
	}
	f, err := os.Open(p.prefix + ending)
	if err != nil {
		return nil, 0, fmt.Errorf("open a file of the graph: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("open a file of the graph: %w", err)
	}
	if err := p.memory.grow(0, times*uint64(info.Size())); err != nil {
		return nil, 0, err
	}
	v, err = unpickle(f, info.Size())
	switch {
	case errors.Is(err, errPickle), errors.Is(err, errPickleEarly):
		return nil, 0, p.wrong(ending, "%w: copy the file again", err)
	case err != nil:
		return nil, 0, p.wrong(ending, "%w", err)
	}
	return v, info.Size(), nil
}

// readTest reads the ids of the vertices that are tested, one a line.
func (p *planetoid) readTest(ctx context.Context) error {
	const ending = ".test.index"
	if _, err := regular(p.prefix + ending); err != nil {
		return err
	}
	l, err := openLines(ctx, p.prefix+ending, maxLine, nil)
	if err != nil {
		return err
	}
	defer l.close()
	seen := map[uint32]bool{}
	return eachLine(ctx, l, func(line uint64, text []byte) error {
		v, ok := parseID(trim(text))
		if !ok || v < 0 || v >= graph.MaxVertices {
			return p.wrong(ending, "line %d: %s is no vertex: write one id in each line", line, shorten(text))
		}
		if seen[uint32(v)] {
			return p.wrong(ending, "line %d: vertex %d is there twice: copy the file again", line, v)
		}
		seen[uint32(v)] = true
		p.test = append(p.test, uint32(v))
		return nil
	})
}

// number says how many vertices there are, once it is known how many come before
// those of the test. Ids that the test leaves out are vertices without features
// and labels, of which citeseer has some.
func (p *planetoid) number(before uint64) error {
	if len(p.test) == 0 || uint64(slices.Min(p.test)) < before {
		return p.wrong(".test.index", "its ids have to begin with %d, as ind.NAME.allx has so many rows: take all files from one place", before)
	}
	const most = 2 // times as many ids as are in the test, at which there is more gap than test
	last := uint64(slices.Max(p.test))
	if before > graph.MaxVertices || last-before >= most*uint64(len(p.test))+64 {
		return p.wrong(".test.index", "vertex %d is too far behind the %d of ind.NAME.allx: take all files from one place", last, before)
	}
	p.before, p.meta.Vertices = uint32(before), uint32(last+1)
	if gaps := last + 1 - before - uint64(len(p.test)); gaps > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s leaves out ids (%d of them), which were taken as vertices without features, label or place in the split.", p.name(".test.index"), gaps))
	}
	return nil
}
