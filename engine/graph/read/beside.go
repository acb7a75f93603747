package read

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/given"
	"github.com/hopmesh/hopmesh/engine/graph/read/tabular"
)

// beside lists the tables of a folder that split the edges of the tables there.
func beside(ctx context.Context, path string) (names []string, err error) {
	what, err := files.Look(ctx, path)
	if err != nil || what != files.Folder {
		return nil, err
	}
	all, err := files.List(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", files.Show(path), err)
	}
	for _, name := range all {
		stem, ok := tabular.IsTable(name)
		if _, is := given.PlaceOf(stem); ok && is {
			names = append(names, name)
		}
	}
	return names, nil
}

// openTables opens tables of a format and, if some lie beside them, those that split their edges.
func openTables(ctx context.Context, path, format string, o Options) (src graph.Source, err error) {
	if o.Beside, err = beside(ctx, path); err != nil {
		return nil, err
	}
	src, err = openers[format](ctx, path, o)
	if err != nil || len(o.Beside) == 0 {
		return src, err
	}
	split := make([]given.Pairs, 0, len(o.Beside))
	for _, name := range o.Beside {
		stem, _ := tabular.IsTable(name)
		place, _ := given.PlaceOf(stem)
		split = append(split, given.Pairs{Place: place, Name: name, Read: func(ctx context.Context, yield func(graph.EdgeBatch) error) (err error) {
			links, err := tabular.OpenLinks(ctx, files.Join(path, name), "", o.Memory)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, links.Close()) }()
			return links.Read(ctx, src, src, yield)
		}})
	}
	of, err := given.Of(ctx, src, split, o)
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return of, nil
}
